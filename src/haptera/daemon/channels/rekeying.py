"""New keys for what goes on for long: a process is another one to its neighbours once a day.

The boot-id is part of each key. So one that takes another boot-id seals with another key, as a new
process would: to the other end, of whatever version, it is one that has just begun.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterable
from typing import Final

from haptera.sdk.boundary import Boundary

# How long datagrams are sealed with one key.
REKEY_S: Final = 24 * 3_600.0
# What SQLite has room for in an integer.
_BOOT_ID_BITS: Final = 63


def new_boot() -> int:
    """A boot-id that no process had before."""
    return secrets.randbits(_BOOT_ID_BITS) | 1


async def rekey(peers: Callable[[], Iterable[str]], begin: Callable[[str], None]) -> None:
    """Begin with each peer anew once in so long, one after the other, until cancelled.

    From some time on, which is drawn: those who began together do not so together.
    """
    await asyncio.sleep(REKEY_S * secrets.SystemRandom().random())
    while True:
        names = sorted(peers())
        for name in names:
            with Boundary(f"new keys with {name}"):
                begin(name)
            await asyncio.sleep(REKEY_S / len(names))
        if not names:
            await asyncio.sleep(REKEY_S)
