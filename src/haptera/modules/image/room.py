"""Bounds what a build writes, while it does: by the rest of the quota, and by the disk."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from haptera.images.manifest import CHUNK_BYTES
from haptera.modules.image.store import MB
from haptera.sdk import Refused

# The parent's state is on the same disk, and must find room whatever is built.
DISK_FREE_BYTES_MIN: Final = 256_000_000


@dataclass(frozen=True, slots=True)
class StoreRoom:
    """So much one more artefact in this folder may take, and no more than its disk can spare."""

    folder: Path
    artefact_bytes: int | None = None
    disk_free_bytes_min: int = DISK_FREE_BYTES_MIN

    def check(self, size_bytes: int) -> None:
        """See that one more artefact of this size, holes included, has room in the quota.

        Raises:
            Refused: it has none.
        """
        if self.artefact_bytes is not None and size_bytes > self.artefact_bytes:
            raise Refused(
                f"it takes more than {self.artefact_bytes / MB:.1f} MB, all that is left of the"
                " quota: `haptera image gc --dry-run` shows what can be freed; or raise quota_mb in"
                " the settings of the module image"
            )

    def check_disk(self, size_bytes: int = 0) -> None:
        """See that so much more can be written.

        Raises:
            Refused: the rest is kept for the parent's state.
        """
        disk = os.statvfs(self.folder)
        free_bytes = disk.f_bavail * disk.f_frsize
        if free_bytes - size_bytes < self.disk_free_bytes_min:
            more = f" and it needs {size_bytes / MB:.1f} MB" if size_bytes else ""
            raise Refused(
                f"the disk of {self.folder} has {free_bytes / MB:.1f} MB left{more}:"
                f" {self.disk_free_bytes_min / MB:.1f} MB are kept for the parent's state"
            )

    def copy(self, source: BinaryIO, place: Path) -> None:
        """Copy a regular file with its holes, in the size that it had at the beginning.

        Raises:
            Refused: it has no room, or became shorter meanwhile.
        """
        size_bytes = os.fstat(source.fileno()).st_size
        self.check(size_bytes)
        with place.open("xb") as copied:
            for start, end in _data(source.fileno(), size_bytes):
                source.seek(start)
                copied.seek(start)
                while start < end:
                    self.check_disk()
                    chunk = source.read(min(CHUNK_BYTES, end - start))
                    if not chunk:
                        raise Refused(f"{source.name} became shorter while it was copied")
                    copied.write(chunk)
                    start += len(chunk)
            copied.truncate(size_bytes)


def _data(descriptor: int, size_bytes: int) -> Iterator[tuple[int, int]]:
    """Where a file has data, and no hole."""
    end = 0
    while end < size_bytes:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError:  # ENXIO: a hole up to the end
            return
        end = min(os.lseek(descriptor, start, os.SEEK_HOLE), size_bytes)
        if start < end:
            yield start, end
