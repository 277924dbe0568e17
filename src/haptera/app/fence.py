"""The check at the point of effect: what an older epoch still wants to do is refused.

A lease alone cannot exclude that its holder was stopped between its last look and its act. So
whatever the leader changes keeps the highest epoch that it has seen, beside it, and refuses lower
ones (the fencing token of Kleppmann, "How to do distributed locking", 2016).
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

EPOCH_BYTES_MAX: Final = 32


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
            seen = int(os.pread(descriptor, EPOCH_BYTES_MAX, 0).strip() or 0)
            if epoch < seen:
                raise StaleEpochError(epoch, seen)
            if epoch > seen:
                os.pwrite(descriptor, f"{epoch:0{EPOCH_BYTES_MAX - 1}}\n".encode("ascii"), 0)
                os.fdatasync(descriptor)
            yield
        finally:
            os.close(descriptor)
