"""The check at the point of effect: what an older epoch still wants to do is refused.

A lease alone cannot exclude that its holder was stopped between its last look and its act. So
whatever the leader changes keeps the highest epoch that it has seen, beside it, and refuses lower
ones (the fencing token of Kleppmann, "How to do distributed locking", 2016).
"""

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

EPOCH_BYTES_MAX: Final = 32
_LINE: Final = re.compile(rb"\d{%d}\n" % (EPOCH_BYTES_MAX - 1))


class StaleEpochError(Exception):
    """A later epoch has acted here already."""

    def __init__(self, epoch: int, seen: int) -> None:
        super().__init__(f"epoch {epoch} is over: {seen} has acted here")
        self.epoch = epoch
        self.seen = seen


class Fence:
    """A file that keeps the highest epoch that has passed it; all who act lock it for so long."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._seen = 0

    @contextlib.contextmanager
    def passed(self, epoch: int) -> Iterator[None]:
        """Act under this epoch, alone, and on disk before anything is done.

        Raises:
            StaleEpochError: a later one has passed.
            ValueError: the file holds something else than an epoch.
            OSError: it cannot be opened or made.
        """
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            kept = self._read(descriptor)
            if epoch < (seen := max(kept, self._seen)):
                raise StaleEpochError(epoch, seen)
            if epoch > kept:
                os.pwrite(descriptor, f"{epoch:0{EPOCH_BYTES_MAX - 1}}\n".encode("ascii"), 0)
                os.fdatasync(descriptor)
            self._seen = epoch
            yield
        finally:
            os.close(descriptor)

    def _read(self, descriptor: int) -> int:
        line = os.pread(descriptor, EPOCH_BYTES_MAX, 0)
        if line and not _LINE.fullmatch(line):  # cut short, it would be a lower number
            raise ValueError(f"{self._path} does not hold an epoch")
        return int(line or b"0")
