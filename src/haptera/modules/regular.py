"""Opens files whose names came from elsewhere: regular ones only, and without a wait."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from haptera.sdk import Refused

_SORTS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def is_regular(place: Path) -> bool:
    """True if a regular file is there; false of a name that none can have."""
    try:
        return place.is_file()
    except OSError:
        return False


def open_regular(place: Path) -> BinaryIO:
    """A regular file to read; whatever else is there is not even opened.

    To open a FIFO is to wait for who writes to it, and some devices act when they are opened.

    Raises:
        Refused: it is none.
        OSError: it is not there, or may not be read.
    """
    with _found(place) as file:
        return file.open("rb")


def write_regular(place: Path, content: bytes) -> None:
    """Write over a regular file that is there, by one call.

    Raises:
        Refused: it is none.
        OSError: it is not there, or may not be written.
    """
    with _found(place) as found, found.open("wb", buffering=0) as file:
        file.write(content)


@contextmanager
def _found(place: Path) -> Iterator[Path]:
    handle = os.open(place, os.O_PATH | os.O_CLOEXEC)
    try:
        sort = stat.S_IFMT(os.fstat(handle).st_mode)
        if sort != stat.S_IFREG:
            raise Refused(f"{place} is {_SORTS.get(sort, 'no file')}: name a regular file")
        # By its handle, for another thing may have that name by now.
        yield Path(f"/proc/self/fd/{handle}")
    finally:
        os.close(handle)
