"""Patience with BMCs: one that refuses a login, or asks for time, is left alone for a while."""

import hashlib
from dataclasses import dataclass
from typing import Final

from haptera.modules.effects import LoginError, NotYetError

# A BMC locks an account after some failures within minutes: 3 to 5, as makers deliver them.
LOGIN_S_MIN: Final = 60.0
LOGIN_S_MAX: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class _Held:
    """Nothing is asked until then, for this reason; `logins` were refused in a row, of `who`."""

    error: Exception
    until: float
    who: bytes
    logins: int


class Patience:
    """Keeps, by the address of a device, until when it is not asked, and why.

    Another name or password than was refused is tried at once. Times are in seconds.
    """

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}

    def check(self, address: str, credentials: tuple[str, str], now: float) -> None:
        """Ask whether the device may be asked.

        Raises:
            LoginError: it refused this name and password, and would count them again.
            NotYetError: it asked for time.
        """
        held = self._held.get(address)
        if held is None or (held.logins and held.who != _digest(credentials)):
            return
        left_s = held.until - now
        if left_s > 0:
            words = f"{held.error}; not asked again for {left_s:.0f} s"
            raise LoginError(words) if held.logins else NotYetError(words, left_s)

    def refused(
        self, address: str, credentials: tuple[str, str], error: LoginError, now: float
    ) -> None:
        """A login failed: the next is tried after twice the time each time, up to an hour."""
        who, held = _digest(credentials), self._held.get(address)
        before = held.logins if held is not None and held.who == who else 0
        wait_s = min(LOGIN_S_MIN * 2**before, LOGIN_S_MAX)
        self._held[address] = _Held(error, now + wait_s, who, before + 1)

    def hold(self, address: str, error: Exception, until: float) -> None:
        """The device asks for time."""
        self._held[address] = _Held(error, until, b"", 0)

    def answered(self, address: str) -> None:
        """It does what it is asked: all is forgotten."""
        self._held.pop(address, None)


def _digest(credentials: tuple[str, str]) -> bytes:
    return hashlib.sha256("\0".join(credentials).encode()).digest()
