"""The thread that writes: what a job raises is that job's failure, and the thread goes on."""

import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from haptera.model.changes import Cause
from haptera.runtime.store.journaled import JournaledConnection
from haptera.runtime.store.sqlite_writer import Failure, Writer, WriterJob

WITHIN_S = 60.0


def raising(error: Exception) -> Callable[[sqlite3.Connection], Any]:
    def work(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO it VALUES (1)")
        raise error

    return work


@pytest.mark.parametrize("error", [ValueError("embedded null byte"), TypeError("no"), KeyError(7)])
def test_whatever_a_job_raises_is_its_own_failure(tmp_path: Path, error: Exception) -> None:
    path = tmp_path / "it.db"
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, factory=JournaledConnection
    )
    connection.execute("CREATE TABLE it (at INTEGER)")
    writer = Writer(connection, "it")
    works = (raising(error), lambda connection: connection.execute("INSERT INTO it VALUES (2)"))
    ends: list[Future[Any]] = [Future() for _ in works]

    for work, end in zip(works, ends, strict=True):
        assert writer.put(WriterJob(work, end.set_result)) is None
    failed, done = (end.result(WITHIN_S) for end in ends)
    writer.close()

    assert isinstance(failed, Failure)
    assert failed.cause is Cause.INVALID
    assert failed.text.startswith(type(error).__name__)
    assert not isinstance(done, Failure)
    assert sqlite3.connect(path).execute("SELECT at FROM it").fetchall() == [(2,)]
