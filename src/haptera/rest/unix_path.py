"""Paths of Unix sockets: the kernel takes 107 bytes of one, and folders may lie deeper."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PATH_BYTES_MAX: Final = 107


@contextlib.contextmanager
def short(path: Path) -> Iterator[str]:
    """A name for the socket at this path that the kernel takes, for as long as it is asked for.

    Raises:
        OSError: the socket's own name is too long, or the folder does not exist.
    """
    if _fits(str(path)):
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        name = f"/proc/self/fd/{folder}/{path.name}"
        if not _fits(name):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        yield name
    finally:
        os.close(folder)


def _fits(name: str) -> bool:
    return len(os.fsencode(name)) <= PATH_BYTES_MAX
