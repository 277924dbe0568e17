"""What a program notes of each message, in a file of its process, for who looks from outside."""

import hashlib
import os
from pathlib import Path
from typing import Final, Self

FOLDER: Final = "ROUTER_RECORDS"


class Record:
    """A file of lines, each appended in one write: none is lost where the process is killed."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    @classmethod
    def of_environment(cls) -> Self:
        """That of this process: GROUP.RANK.PLACEMENT.START."""
        names = ("GROUP", "RANK", "PLACEMENT", "STARTS")
        return cls(
            Path(os.environ[FOLDER], ".".join(os.environ[f"HAPTERA_{one}"] for one in names))
        )

    def note(self, *words: object) -> None:
        """One line."""
        os.write(self._descriptor, (" ".join(map(str, words)) + "\n").encode())


def digest(octets: bytes) -> str:
    """A message in so few letters."""
    return hashlib.blake2b(octets, digest_size=8).hexdigest()
