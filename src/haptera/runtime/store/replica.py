"""A state file that follows another's, and becomes one of its own when it is promoted."""

import secrets
import sqlite3
from pathlib import Path
from typing import Self

from haptera.model.errors import HapteraError
from haptera.runtime.identity.lock import Lock, take
from haptera.runtime.identity.private import private_directory, sync, write_durable
from haptera.runtime.store.journaled import JournaledConnection, replay
from haptera.runtime.store.schema_sql import EPOCH_BITS, open_database

NOWHERE = 0, 0


class Replica:
    """The copy at `path`; `log` and `place` say how far it follows, in this process.

    A process that starts does not know how far its file came, and takes it whole once more.
    """

    @classmethod
    def open(cls, path: Path) -> Self:
        """Hold the file, be it there yet or not.

        Raises:
            HapteraError: another process holds it.
        """
        private_directory(path.parent)
        return cls(path, take(path))

    def __init__(self, path: Path, held: Lock) -> None:
        self._path = path
        self._lock = held
        self._connection: JournaledConnection | None = None
        self.log, self.place = NOWHERE

    def take_whole(self, content: bytes, log: int, place: int) -> None:
        """Be this file from now on; until it is whole on the disk, what was there stays.

        Raises:
            HapteraError: it is no state file.
        """
        draft = self._path.with_name(f"{self._path.name}.whole")
        write_durable(draft, content)
        open_database(draft).close()  # what is no state file does not take its place
        self._close()
        for name in ("-wal", "-shm"):
            self._path.with_name(self._path.name + name).unlink(missing_ok=True)
        draft.rename(self._path)
        sync(self._path.parent)
        self._connection = open_database(self._path)
        self.log, self.place = log, place

    def check_next(self, log: int, place: int) -> None:
        """See that what follows on this place may be taken; else all is to be taken anew.

        Raises:
            HapteraError: what is here is of another place.
        """
        if self._connection is None or (log, place) != (self.log, self.place):
            self.log, self.place = NOWHERE
            raise HapteraError(
                "what the parent tells does not follow on what is here",
                where=str(self._path),
                do="nothing; everything is copied again",
            )

    def take(self, batches: list[bytes]) -> None:
        """Write what comes next; where it does not fit, all is to be taken anew.

        Raises:
            sqlite3.Error: it does not fit, or the disk is full.
        """
        assert self._connection is not None
        try:
            for batch in batches:
                replay(self._connection, batch)
                self.place += 1
        except sqlite3.Error:
            self.log, self.place = NOWHERE
            raise

    @property
    def connection(self) -> sqlite3.Connection | None:
        """What is held of the file, to read; None before it was whole."""
        return self._connection

    def promote(self) -> int:
        """Be a store of its own, in a new epoch; returns the revision that it holds.

        Raises:
            HapteraError: nothing was ever copied.
        """
        if self._connection is None:
            if not self._path.exists():
                raise HapteraError(
                    "has no copy of a parent's state yet",
                    where=str(self._path),
                    do="let it copy its primary first",
                )
            self._connection = open_database(self._path)
        epoch = secrets.randbits(EPOCH_BITS)
        with self._connection:
            self._connection.execute("UPDATE store SET epoch = ?", (epoch,))
        (revision,) = self._connection.execute("SELECT revision FROM store").fetchone()
        return int(revision)

    def close(self) -> None:
        """Let go of the file."""
        self._close()
        self._lock.release()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
