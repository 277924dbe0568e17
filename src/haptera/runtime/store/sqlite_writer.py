"""One thread that owns a database: all that waits at a moment is committed together, once."""

import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from haptera.model.changes import Cause
from haptera.model.errors import HapteraError
from haptera.runtime.store.journaled import JournaledConnection, pack
from haptera.sdk.boundary import Boundary

WRITES_QUEUED_MAX: Final = 10_000
# How many share one commit, so that the first of them does not wait for ever.
BATCH_MAX: Final = 1_000
CLOSE_WITHIN_S: Final = 30.0

# What went wrong by SQLite's primary code (the low byte); the rest keep SQLite's own words.
_WORDS: Final = {
    sqlite3.SQLITE_FULL: "disk is full",
    sqlite3.SQLITE_READONLY: "cannot be written: it is read-only",
    sqlite3.SQLITE_IOERR: "the disk gave an error",
    sqlite3.SQLITE_CANTOPEN: "a file beside it cannot be opened",
    sqlite3.SQLITE_BUSY: "another program holds it locked",
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_NOTADB: "is damaged",
}


class RefusalError(Exception):
    """Raised by a job that finds that it must not be done; nothing of it holds."""


class StaleError(RefusalError):
    """Raised by a job that was made for what is no longer so."""


# What a write is refused with, which its author hears of.
_REFUSALS: Final = (RefusalError, HapteraError, OverflowError, UnicodeError)


# Takes the statements of one commit, packed.
Shipped = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job was not done; nothing of it holds."""

    text: str
    cause: Cause = Cause.STORAGE


@dataclass(frozen=True, slots=True)
class WriterJob:
    """`work` runs in the thread and may run twice; `done` gets its result once that is durable."""

    work: Callable[[sqlite3.Connection], Any]
    done: Callable[[Any], None]


class Writer:
    """Runs jobs in order, each in a savepoint of its own, many in one transaction.

    `shipped` gets what each commit wrote, in the thread, before anybody hears of the commit.
    `fault` is why the last commit could not be made, for questions about the disk.
    """

    def __init__(
        self, connection: JournaledConnection, name: str, shipped: Shipped | None = None
    ) -> None:
        self._connection = connection
        self._connection.journal = None if shipped is None else []
        self._shipped = shipped
        self._name = name
        self._queue: queue.Queue[WriterJob | None] = queue.Queue()
        self._closed = False
        self.fault: str | None = None
        self._thread = threading.Thread(target=self._run, name=f"writer of {name}", daemon=True)
        self._thread.start()

    def put(self, job: WriterJob) -> Failure | None:
        """Queue a job, at once; where that cannot be, `done` is never called."""
        if self._closed or not self._thread.is_alive():
            return Failure(f"{self._name}: is closed; nothing was changed")
        if self._queue.qsize() >= WRITES_QUEUED_MAX:
            return Failure(
                f"{self._name}: {WRITES_QUEUED_MAX} writes wait already; nothing was changed"
            )
        self._queue.put_nowait(job)
        return None

    def close(self) -> None:
        """Finish what is queued, then close the database."""
        if self._closed:
            return
        self._closed = True
        self._queue.put_nowait(None)
        self._thread.join(CLOSE_WITHIN_S)

    def _run(self) -> None:
        try:
            while batch := self._take():
                self._commit(batch)
        finally:
            self._connection.close()

    def _take(self) -> list[WriterJob]:
        """All that waits, at least one; empty at the end."""
        batch: list[WriterJob] = []
        job = self._queue.get()
        while job is not None:
            batch.append(job)
            if len(batch) == BATCH_MAX or self._queue.empty():
                return batch
            job = self._queue.get()
        if batch:
            self._queue.put_nowait(None)  # the end comes after these
        return batch

    def _commit(self, batch: list[WriterJob]) -> None:
        results = self._together(batch)
        if isinstance(results, Failure) and len(batch) > 1:
            # One too large for the disk must not take its neighbours with it.
            for job in batch:
                self._commit([job])
        elif isinstance(results, Failure):
            batch[0].done(results)
        else:
            for job, result in zip(batch, results, strict=True):
                job.done(result)

    def _together(self, batch: list[WriterJob]) -> list[Any] | Failure:
        before = self._connection.total_changes
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            results = [self._each(job) for job in batch]
            self._connection.execute("COMMIT")
            self._ship()
        except sqlite3.Error as error:
            self._drop_since(0)
            if self._connection.in_transaction:
                with contextlib.suppress(sqlite3.OperationalError):  # it rolled back by itself
                    self._connection.execute("ROLLBACK")
            self.fault = f"{self._name}: {_in_words(error)}"
            return Failure(f"{self.fault}; nothing was changed")
        # Who only reads is served by a full disk, too.
        if self._connection.total_changes != before:
            self.fault = None
        return results

    def _ship(self) -> None:
        if self._shipped is not None and self._connection.journal:
            self._shipped(pack(self._connection.journal))
        self._drop_since(0)

    def _drop_since(self, mark: int) -> None:
        """Forget what was noted since, for it was rolled back or shipped."""
        if self._connection.journal is not None:
            del self._connection.journal[mark:]

    def _each(self, job: WriterJob) -> Any:
        mark = len(self._connection.journal or ())
        self._connection.execute("SAVEPOINT job")
        try:
            with Boundary("a write", (sqlite3.Error, *_REFUSALS)) as one:
                result = job.work(self._connection)
            if one.fault is not None:
                raise RefusalError(one.fault)
        except _REFUSALS as refusal:
            self._connection.execute("ROLLBACK TO job")
            self._drop_since(mark)
            stale = isinstance(refusal, StaleError)
            result = Failure(str(refusal), Cause.STALE if stale else Cause.INVALID)
        self._connection.execute("RELEASE job")
        return result


def _in_words(error: sqlite3.Error) -> str:
    # Errors of the sqlite3 module itself have no code.
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return str(error) if code is None else _WORDS.get(code & 0xFF, str(error))
