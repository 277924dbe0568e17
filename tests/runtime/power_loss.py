"""A disk that loses its power: only what was synced is there for sure, of the rest any sectors."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import apsw

SECTOR_BYTES = 512


class PowerLostError(Exception):
    """The power went: nothing is written any more."""


@dataclass
class PowerLossDisk:
    """What is on the platters of each file, and what was written and not synced, in order.

    The power goes at the write, truncation or sync with this number.
    """

    goes_at: int | None = None
    at: int = 0
    synced: dict[str, bytearray] = field(default_factory=dict)
    pending: dict[str, list[tuple[int, bytes | None]]] = field(default_factory=dict)
    happened: Counter[str] = field(default_factory=Counter)

    def step(self, what: str) -> None:
        """One more operation; after the power went, none is done."""
        self.at += 1
        if self.goes_at is not None and self.at >= self.goes_at:
            raise PowerLostError(what)
        self.happened[what] += 1

    def sync(self, name: str) -> None:
        self._put(name, self.pending.pop(name, []))

    def lose(self, rng: Random, folder: Path) -> None:
        """Write to a folder what the disk holds: of what was not synced, any sectors."""
        for name, operations in self.pending.items():
            sectors = [part for one in operations for part in _sectors(*one)]
            share = rng.choice((0.0, 0.2, 0.9, 1.0))
            self._put(name, [one for one in sectors if rng.random() < share])
        for name, content in self.synced.items():
            (folder / Path(name).name).write_bytes(content)

    def _put(self, name: str, operations: list[tuple[int, bytes | None]]) -> None:
        content = self.synced.setdefault(name, bytearray())
        for offset, data in operations:
            if data is None:
                del content[offset:]
                continue
            content.extend(bytes(max(0, offset + len(data) - len(content))))
            content[offset : offset + len(data)] = data


def _sectors(offset: int, data: bytes | None) -> list[tuple[int, bytes | None]]:
    if data is None:
        return [(offset, None)]
    starts = range(0, len(data), SECTOR_BYTES)
    return [(offset + start, data[start : start + SECTOR_BYTES]) for start in starts]


class PowerLossVfs(apsw.VFS):
    """Hands all on to the system's files, and notes it on a disk."""

    def __init__(self, name: str, disk: PowerLossDisk) -> None:
        self._disk = disk
        super().__init__(name, "")

    def xOpen(  # noqa: N802 (SQLite's name)
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> "PowerLossFile":
        return PowerLossFile(self._disk, name, flags)

    def excepthook(self, *_: object) -> None:
        """What fails after the power went is nobody's concern."""


class PowerLossFile(apsw.VFSFile):
    """One file of such a disk."""

    def __init__(
        self, disk: PowerLossDisk, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.step("write")
        self._disk.pending.setdefault(self._name, []).append((offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.step("truncate")
        self._disk.pending.setdefault(self._name, []).append((newsize, None))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.step("sync")
        self._disk.sync(self._name)

    def excepthook(self, *_: object) -> None:
        """As its VFS."""
