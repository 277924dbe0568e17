"""The queue of jobs as rows of `state.db`: a table of its own, each job as JSON."""

import sqlite3
from typing import Final

import msgspec

from haptera.queue.duty import Duty
from haptera.queue.entry import QueueChanges, StoredQueue
from haptera.queue.job import Job

JOBS: Final = """
CREATE TABLE jobs (  -- those that wait or run, and the last that ended
    id INTEGER PRIMARY KEY,
    job TEXT NOT NULL
);
CREATE TABLE duties (  -- who takes no jobs, and why
    holder TEXT PRIMARY KEY,
    duty TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE queue (  -- numbers are given once
    one INTEGER PRIMARY KEY CHECK (one = 1),
    job_last INTEGER NOT NULL,
    token_last INTEGER NOT NULL
);
INSERT INTO queue VALUES (1, 0, 0);
"""


def load_queue(connection: sqlite3.Connection) -> StoredQueue:
    """All that is known of the queue."""
    jobs = connection.execute("SELECT job FROM jobs ORDER BY id")
    duties = connection.execute("SELECT holder, duty FROM duties")
    (last,) = connection.execute("SELECT job_last, token_last FROM queue").fetchall()
    return StoredQueue(
        tuple(msgspec.json.decode(text, type=Job) for (text,) in jobs),
        {holder: msgspec.json.decode(text, type=Duty) for holder, text in duties},
        *last,
    )


def save_queue(connection: sqlite3.Connection, changes: QueueChanges) -> None:
    """Write what changed, whole or not at all."""
    for key, job in changes.jobs.items():
        if job is None:
            connection.execute("DELETE FROM jobs WHERE id = ?", (key,))
        else:
            connection.execute(
                "INSERT INTO jobs VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET job = ?2",
                (key, _text(job)),
            )
    for holder, duty in changes.duties.items():
        if duty is None:
            connection.execute("DELETE FROM duties WHERE holder = ?", (holder,))
        else:
            connection.execute(
                "INSERT INTO duties VALUES (?1, ?2) ON CONFLICT (holder) DO UPDATE SET duty = ?2",
                (holder, _text(duty)),
            )
    connection.execute(
        "UPDATE queue SET job_last = max(job_last, ?), token_last = max(token_last, ?)",
        (changes.job_last, changes.token_last),
    )


def _text(value: Job | Duty) -> str:
    return msgspec.json.encode(value).decode()
