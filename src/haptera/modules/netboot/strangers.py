"""Machines that asked for an address and have no offer: the latest ones, in a file for people."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from haptera.modules.netboot import dhcp
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.sdk import HapteraError

FOLDER: Final = "netboot"
_FILE: Final = "unclaimed.json"
STRANGERS_MAX: Final = 256
# More than are shown, so that an invented one is known when it asks again.
REMEMBERED_MAX: Final = 16_384
FILE_BYTES_MAX: Final = STRANGERS_MAX * 1_024
# Who has asked for nothing for so long is forgotten.
FORGOTTEN_S: Final = 3_600.0
# Firmware asks a few times in a row, then at most so often (RFC 2131, 4.1): who asks more often is
# none, and is shown last.
ASKED_AT_ONCE_MAX: Final = 5
ASKS_EVERY_S: Final = 4.0
VENDOR_CHARACTERS_MAX: Final = 64
ASKED_MAX: Final = 1 << 31
# By architecture (RFC 4578, and IANA's list since).
_FIRMWARE: Final = {
    0: "BIOS",
    7: "UEFI x86-64",
    9: "UEFI x86-64",
    11: "UEFI arm64",
    16: "UEFI x86-64, HTTP",
    19: "UEFI arm64, HTTP",
}


class Stranger(msgspec.Struct, frozen=True):
    """One machine: its card's MAC address, what it said of itself, and when it asked.

    `firmware` is None, and `vendor` too, where it did not say; times are seconds since 1970.
    """

    mac: str
    firmware: str | None
    vendor: str | None
    asked: int
    first_s: float
    last_s: float


class Strangers:
    """Those that were heard of late; `file` is None where nobody is to read of them."""

    def __init__(self, file: Path | None, wall_s: Callable[[], float]) -> None:
        self._file = file
        self._wall_s = wall_s
        self._by_mac: dict[bytes, Stranger] = {}
        self._changed = True

    def hear(self, request: DhcpMessage) -> bool:
        """Note that this one asks; whether it is new, and there was room to show it."""
        now, before = self._wall_s(), self._by_mac.pop(request.mac, None)
        room = len(self._by_mac) < STRANGERS_MAX
        if len(self._by_mac) == REMEMBERED_MAX:
            self._by_mac = self._likeliest(REMEMBERED_MAX // 2)
        asked, first_s = (1, now) if before is None else (before.asked + 1, before.first_s)
        self._by_mac[request.mac] = Stranger(
            request.mac.hex(":"),
            _firmware(request),
            _vendor(request),
            min(asked, ASKED_MAX),
            first_s,
            now,
        )
        self._changed = True
        return before is None and room

    def save(self) -> None:
        """Forget who is silent, and write the others down if anything changed."""
        known, since = self._by_mac, self._wall_s() - FORGOTTEN_S
        self._by_mac = {mac: one for mac, one in known.items() if one.last_s >= since}
        if self._file is None or not (self._changed or len(known) != len(self._by_mac)):
            return
        draft = self._file.with_suffix(".new")
        draft.write_bytes(msgspec.json.encode([*self._likeliest(STRANGERS_MAX).values()]))
        draft.replace(self._file)
        self._changed = False

    def _likeliest(self, count: int) -> dict[bytes, Stranger]:
        """Those that are machines, by how they ask: not faster than firmware, but again.

        Of several that asked as often, those that did so the latest; a made-up one asks once.
        """
        ranked = sorted(self._by_mac, key=lambda mac: _rank(self._by_mac[mac]), reverse=True)
        kept = {*ranked[:count]}
        return {mac: one for mac, one in self._by_mac.items() if mac in kept}


def _is_hasty(one: Stranger) -> bool:
    return one.asked > ASKED_AT_ONCE_MAX + (one.last_s - one.first_s) / ASKS_EVERY_S


def _rank(one: Stranger) -> tuple[bool, int, float]:
    return not _is_hasty(one), one.asked, one.last_s


def strangers_file(run_dir: Path) -> Path:
    return run_dir / FOLDER / _FILE


def read_strangers(run_dir: Path) -> list[Stranger]:
    """Those that the module of this parent wrote down, the latest first; none before it did.

    Raises:
        HapteraError: what lies there is none of its files.
    """
    file = strangers_file(run_dir)
    try:
        found = msgspec.json.decode(_read(file), type=list[Stranger])
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        do = "remove it: the module netboot writes it anew"
        raise HapteraError(f"cannot be read: {error}", where=str(file), do=do) from None
    return sorted(found, key=lambda one: (-one.last_s, one.mac))


def _read(file: Path) -> bytes:
    """What the module wrote: it is its own to make a link, a pipe, or without an end."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as opened:
        content = opened.read(FILE_BYTES_MAX + 1) or b""
    if len(content) > FILE_BYTES_MAX:
        raise OSError(errno.EFBIG, f"more than {FILE_BYTES_MAX} bytes")
    return content


def _firmware(request: DhcpMessage) -> str | None:
    if dhcp.ARCHITECTURE not in request.options:
        return None
    number = request.architectures[0]
    return _FIRMWARE.get(number, f"architecture {number}")


def _vendor(request: DhcpMessage) -> str | None:
    """What it says that it is, as far as that can be shown to people."""
    said = request.options.get(dhcp.VENDOR_CLASS, b"").decode("ascii", "replace")
    shown = "".join(one if one.isascii() and one.isprintable() else "?" for one in said)
    return shown[:VENDOR_CHARACTERS_MAX] or None
