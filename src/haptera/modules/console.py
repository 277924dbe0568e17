"""The record of what the serial console of a node has sent: a module writes it, people read it."""

import asyncio
import datetime
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

# Of a record and of the one before it; a record begins with the end of the one before.
RECORD_BYTES_MAX: Final = 1 << 20
REPEATED_BYTES: Final = 4_096
READ_BYTES: Final = 4_096


class ConsoleError(Exception):
    """No session with a console begins."""


def record_of(folder: Path, node: str) -> Path:
    """Where the record of a node's console lies, in the folder of the module that writes it."""
    return folder / f"{node}.console"


class ConsoleRecord:
    """The last bytes of one console, in a file and the one before it, NAME.1."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def begin(self) -> None:
        """Note that a session began: what was sent before may be missing.

        Raises:
            OSError: it cannot be written.
        """
        # For people, and decides nothing here.
        now = datetime.datetime.now(datetime.UTC)  # noqa: TID251
        self.add(f"[haptera records from {now:%Y-%m-%d %H:%M:%S} UTC]\r\n".encode())

    def add(self, data: bytes) -> None:
        """Keep this too.

        Raises:
            OSError: it cannot be written.
        """
        with open(self._file, "ab", opener=_private) as file:
            file.write(data)
            size = file.tell()
        if size > RECORD_BYTES_MAX:
            self._turn(size)

    def _turn(self, size: int) -> None:
        """Go on in a new file; a record is there at each moment, for who reads it."""
        with self._file.open("rb") as file:
            file.seek(size - REPEATED_BYTES)
            end = file.read()
        draft, before = (self._file.with_name(f"{self._file.name}.{one}") for one in ("new", "1"))
        with open(draft, "wb", opener=_private) as file:
            file.write(end)
        before.unlink(missing_ok=True)
        before.hardlink_to(self._file)
        draft.replace(self._file)


async def record_stream(
    sent: asyncio.StreamReader, record: ConsoleRecord, first: bytes = b""
) -> None:
    """Record a session that has begun until its stream ends; `first` was read of it already.

    Raises:
        OSError: it cannot be written.
    """
    record.begin()
    data = first
    while True:
        record.add(data)
        data = b""
        # A terminal that nobody has any more ends with an error.
        with suppress(OSError):
            data = await sent.read(READ_BYTES)
        if not data:
            return


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
