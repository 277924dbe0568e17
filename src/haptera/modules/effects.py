"""Effects of a command that a BMC answered with an error: none ever, none yet, or unknown."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final

from haptera.sdk import Refused

# How long one command is repeated while its BMC is busy, and how far apart where it names no time.
INSIST_S: Final = 10.0
AGAIN_S: Final = 2.0


class Effect(StrEnum):
    """The effect that a command has had, by the answer to it."""

    # None, and there never will be: this BMC does not have the command, or not in this state.
    LACKING = "lacking"
    # None, and there never will be: for who asks, or as it was asked.
    NEVER = "never"
    # None; the same command may succeed in a moment.
    NOT_YET = "not yet"
    # Perhaps all of it: only a look tells.
    UNKNOWN = "unknown"


class DeviceError(Exception):
    """No answer, or one that cannot be understood: the effect of a command is unknown."""


class LackingError(Refused):
    """The BMC does not have this command, or not in the state that its machine is in."""


class LoginError(Refused):
    """It is there, and does not let in who asks."""


class NotYetError(Refused):
    """It has done nothing, and may do it later: in `after_s`, if it says so."""

    def __init__(self, words: str, after_s: float | None = None) -> None:
        super().__init__(words)
        self.after_s = after_s

    @property
    def again_s(self) -> float:
        """When to try it again."""
        return AGAIN_S if self.after_s is None else self.after_s


_FAILURES: Final[dict[Effect, type[Exception]]] = {
    Effect.LACKING: LackingError,
    Effect.NEVER: Refused,
    Effect.NOT_YET: NotYetError,
    Effect.UNKNOWN: DeviceError,
}


def failure_of(effect: Effect, words: str) -> Exception:
    """What to raise of a command that had this effect."""
    return _FAILURES[effect](words)


async def insist(command: Callable[[], Awaitable[None]]) -> None:
    """Give a command, and give it again for a while as long as its BMC says *not yet*.

    Raises:
        NotYetError: it still does.
    """
    now = asyncio.get_running_loop().time
    ends_at = now() + INSIST_S
    while True:
        try:
            return await command()
        except NotYetError as busy:
            if now() + busy.again_s >= ends_at:
                raise
            await asyncio.sleep(busy.again_s)
