"""Notes of a program on each message, in a file of its process, for checks from outside."""

import hashlib
import os
from pathlib import Path
from typing import Final, Self

from haptera.app import GroupReplica

# Of the line that says who writes a record: his process, and where it runs.
PROCESS: Final = "process"


class Record:
    """A file of lines, each appended in one write: none is lost where the process is killed."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    @classmethod
    def of_replica(cls, folder: str, replica: GroupReplica) -> Self:
        """That of a replica's process, with who it is."""
        names = (replica.group, replica.rank, replica.placement, replica.starts)
        Path(folder).mkdir(exist_ok=True)
        record = cls(Path(folder, ".".join(map(str, names))))
        record.note(PROCESS, os.getpid(), replica.node)
        return record

    def note(self, *words: object) -> None:
        """One line."""
        os.write(self._descriptor, (" ".join(map(str, words)) + "\n").encode())


def digest(octets: bytes) -> str:
    """A message in so few letters."""
    return hashlib.blake2b(octets, digest_size=8).hexdigest()
