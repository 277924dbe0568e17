"""Hiding folders from a process of root by mounts of its own, which it must not be able to undo.

Landlock would have it make nothing in any folder above what is hidden, as in /run, and programs of
a node do. Who loses the capability to mount afterwards finds empty folders there for ever.
"""

import ctypes
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

_NEW_NAMESPACE: Final = 0x0002_0000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _ONE_WAY = 0x1, 0x20, 0x1000, 0x4000, 0x80000
_libc = ctypes.CDLL(None, use_errno=True)


def hide(hidden: Collection[Path], kept: Iterable[Path]) -> None:
    """Have these folders be empty from now on, but for those within them that are kept.

    What the machine mounts later is seen here too; what is mounted here is seen nowhere else.

    Raises:
        OSError: this process may not mount.
    """
    _check(_libc.unshare(_NEW_NAMESPACE))
    _mount("none", Path("/"), "", _RECURSIVE | _ONE_WAY)
    held = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in kept}
    for folder in hidden:
        _mount("tmpfs", folder, "tmpfs", 0, "size=64k,mode=711")
    for path, descriptor in held.items():
        path.mkdir(parents=True, exist_ok=True)
        _mount(f"/proc/self/fd/{descriptor}", path, "", _BIND | _RECURSIVE)
        os.close(descriptor)
    for folder in hidden:
        _mount("tmpfs", folder, "", _REMOUNT | _READ_ONLY)


def _mount(source: str, target: Path, sort: str, flags: int, data: str = "") -> None:
    texts = (source.encode(), os.fsencode(target), sort.encode())
    _check(_libc.mount(*texts, ctypes.c_ulong(flags), data.encode()))


def _check(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
