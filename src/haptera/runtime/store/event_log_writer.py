"""Writing down what happened, a file a day, beside everything else: nobody ever waits for it.

A file begins with all that the one before it knew at its end, so that it can be read alone.
"""

import contextlib
import logging
import queue
import sqlite3
import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from haptera.model.answers.past import Happened, Sort
from haptera.runtime.clock import now_ns
from haptera.runtime.identity.private import private_directory

# Batches of happenings, a turn's each, that may wait for the disk; what is more is lost, and
# counted.
QUEUED_MAX: Final = 4_096
# How long happenings are gathered before they are written together.
GATHERED_NS: Final = 500_000_000
CLOSE_WITHIN_S: Final = 5.0
KEPT_DAYS: Final = 30
KEPT_BYTES_MAX: Final = 1 << 30

_TABLES: Final = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS happened (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at_s REAL NOT NULL,
    entity TEXT NOT NULL,
    sort TEXT NOT NULL,
    name TEXT,
    value TEXT,
    note TEXT
);
CREATE INDEX IF NOT EXISTS happened_to ON happened (entity, id);
"""
_INSERT: Final = (
    "INSERT INTO happened (at_s, entity, sort, name, value, note) VALUES (?, ?, ?, ?, ?, ?)"
)
# The last of each variable and standing since the process began, of entities that are not gone.
_CARRIED: Final = """
INSERT INTO main.happened (at_s, entity, sort, name, value, note)
SELECT at_s, entity, sort, name, value, note FROM before.happened o WHERE id IN (
    SELECT max(id) FROM before.happened
    WHERE sort IN ('seen', 'stands')
        AND id > (SELECT coalesce(max(id), 0) FROM before.happened WHERE sort = 'begun')
    GROUP BY entity, sort, name
)
    AND (sort = 'stands' OR value IS NOT NULL)
    AND id > (SELECT coalesce(max(id), 0) FROM before.happened
        WHERE entity = o.entity AND sort = 'gone')
ORDER BY id
"""

_log = logging.getLogger(__name__)


class Recorder:
    """Files `history-DATE.db` in a folder of their own, by the date in UTC."""

    def __init__(
        self, folder: Path, *, days: int = KEPT_DAYS, bytes_max: int = KEPT_BYTES_MAX
    ) -> None:
        self._folder = private_directory(folder)
        self._days = days
        self._bytes_max = bytes_max
        self._queue: queue.Queue[list[Happened] | None] = queue.Queue(QUEUED_MAX)
        # The first counts in the caller's thread, the others in the writer's.
        self._refused = self._refused_told = self._unwritten = 0
        # How often something was lost, and writing worked again after that.
        self.recoveries = 0
        self._open: tuple[Path, sqlite3.Connection] | None = None
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    def note(self, happened: list[Happened]) -> None:
        """Have this written down some time, if there is room."""
        try:
            self._queue.put_nowait(happened)
        except queue.Full:
            self._refused += len(happened)

    def close(self) -> None:
        """Write down what waits, for a while."""
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=CLOSE_WITHIN_S)
        self._thread.join(CLOSE_WITHIN_S)

    def _run(self) -> None:
        last = False
        while not last:
            batch = self._queue.get()
            gathered = list(batch or ())
            last = batch is None
            if not last:
                last = self._gather(gathered)
            self._write(gathered)
        if self._open is not None:
            self._open[1].close()

    def _gather(self, gathered: list[Happened]) -> bool:
        """Add what comes within a moment; tells whether the end came."""
        until = now_ns() + GATHERED_NS
        with contextlib.suppress(queue.Empty):
            while (left_ns := until - now_ns()) > 0:
                batch = self._queue.get(timeout=left_ns / 1e9)
                if batch is None:
                    return True
                gathered += batch
        return False

    def _write(self, happened: list[Happened]) -> None:
        refused = self._refused
        lost = refused - self._refused_told + self._unwritten
        if lost and happened:
            happened.append(Happened(happened[-1].at_s, "", Sort.LOST, value=str(lost)))
        failed = 0
        for path, some in _by_day(self._folder, happened):
            try:
                connection = self._connection(path)
                with connection:
                    connection.executemany(_INSERT, map(_row, some))
            except (OSError, sqlite3.Error) as error:
                failed += sum(one.sort is not Sort.LOST for one in some)
                self._let_go()
                _log.warning("%s: %d happenings are not written down: %s", path, len(some), error)
        if failed:
            self._unwritten += failed
        elif lost:
            self._refused_told, self._unwritten = refused, 0
            self.recoveries += 1

    def _connection(self, path: Path) -> sqlite3.Connection:
        if self._open is None or self._open[0] != path:
            self._let_go()
            self._forget(path)
            self._open = path, _opened(path, _last_before(path), self._bytes_max)
        return self._open[1]

    def _let_go(self) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _forget(self, current: Path) -> None:
        """Delete the oldest files: more than so many, or too large together."""
        files = [one for one in days(self._folder) if one < current]
        total = sum(one.stat().st_size for one in files)
        while files and (len(files) >= self._days or total > self._bytes_max):
            oldest = files.pop(0)
            total -= oldest.stat().st_size
            for name in (oldest.name, f"{oldest.name}-wal", f"{oldest.name}-shm"):
                oldest.with_name(name).unlink(missing_ok=True)


def days(folder: Path) -> list[Path]:
    """The files that there are, the oldest first."""
    return sorted(folder.glob("history-????-??-??.db"))


def file_of(folder: Path, at_s: float) -> Path:
    """The file of the day of a time."""
    return folder / f"history-{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d}.db"


def _by_day(folder: Path, happened: Iterable[Happened]) -> list[tuple[Path, list[Happened]]]:
    found: dict[Path, list[Happened]] = {}
    for one in happened:
        found.setdefault(file_of(folder, one.at_s), []).append(one)
    return sorted(found.items())


def _last_before(path: Path) -> Path | None:
    earlier = [one for one in days(path.parent) if one < path]
    return earlier[-1] if earlier else None


def _opened(path: Path, before: Path | None, bytes_max: int) -> sqlite3.Connection:
    is_new = not path.exists()
    connection = sqlite3.connect(path, check_same_thread=False)
    path.chmod(0o600)
    connection.executescript(_TABLES)
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    connection.execute(f"PRAGMA max_page_count = {bytes_max // page_bytes}")
    if is_new and before is not None:
        connection.execute("ATTACH ? AS before", (str(before),))
        with connection:
            connection.execute(_CARRIED)
        connection.execute("DETACH before")
    return connection


def _row(one: Happened) -> tuple[object, ...]:
    return one.at_s, one.entity, one.sort.value, one.name, one.value, one.note
