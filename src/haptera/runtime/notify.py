"""Telling systemd that this daemon is ready, that it lives, and that it ends (sd_notify)."""

import asyncio
import os
import socket
from typing import Final

_SOCKET: Final = "NOTIFY_SOCKET"
_WATCHDOG: Final = "WATCHDOG_USEC"
_US_PER_S: Final = 1_000_000


async def keep_telling() -> None:
    """Say that it is ready, then that it lives for as long as its loop turns; nothing elsewhere.

    Cancelled, it says that it ends.
    """
    if _SOCKET not in os.environ:
        return
    tell("READY=1")
    try:
        while (every_s := _every_s()) is not None:
            tell("WATCHDOG=1")
            await asyncio.sleep(every_s)
        await asyncio.Event().wait()
    finally:
        tell("STOPPING=1")


def tell(state: str) -> None:
    """Send one state, where somebody asked for it; a manager that is gone is no harm."""
    place = os.environ.get(_SOCKET, "")
    if not place.startswith(("/", "@")):
        return
    address = f"\0{place[1:]}" if place.startswith("@") else place
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as door:
        try:
            door.connect(address)
            door.send(state.encode())
        except OSError:
            return


def _every_s() -> float | None:
    """How often it is to say that it lives: twice within what systemd waits for."""
    text = os.environ.get(_WATCHDOG, "")
    return int(text) / 2 / _US_PER_S if text.isdecimal() and int(text) > 0 else None
