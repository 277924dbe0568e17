"""The queue of jobs as rows of `state.db`: each job as JSON, an array's spec once for all of it.

The spec is in a table of its own, and not in a column: a primary of an earlier version writes
whole jobs into the same table of its follower, and these are read as well.
"""

import sqlite3
from typing import Any, Final, Literal

import msgspec

from haptera.kinds import node
from haptera.kinds.node import NodeWork
from haptera.queue.entry import QueueChanges, StoredQueue
from haptera.queue.job import Job, JobSpec
from haptera.runtime.store.rows import Whole, read_row, read_rows

JOBS: Final = """
CREATE TABLE jobs (  -- those that wait or run, and the last that ended
    id INTEGER PRIMARY KEY,
    job TEXT NOT NULL
);
CREATE TABLE array_specs (  -- what each job of an array is to run, by the array's number
    array INTEGER PRIMARY KEY,
    spec TEXT NOT NULL
);
CREATE TABLE duties (  -- of earlier versions, which may be followed
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
    specs = dict(
        read_rows(
            connection,
            "array_specs",
            "SELECT array, spec FROM array_specs",
            tuple[int, str],
            lambda row: (row[0], msgspec.json.decode(row[1], type=JobSpec)),
        )
    )
    jobs = read_rows(
        connection,
        "jobs",
        "SELECT id, job FROM jobs ORDER BY id",
        tuple[int, str],
        lambda row: _job(*row, specs),
    )
    last = "SELECT job_last, token_last FROM queue"
    return StoredQueue(tuple(jobs), *read_row(connection, "queue", last, tuple[Whole, Whole]))


def desire_duties(connection: sqlite3.Connection, wall_s: float) -> None:
    """Desire of nodes now what kept jobs from them in a file of an earlier version.

    What nodes have said of themselves they say again.
    """
    duties = read_rows(
        connection,
        "duties",
        "SELECT holder, duty FROM duties",
        tuple[str, str],
        lambda row: (row[0], msgspec.json.decode(row[1], type=_Duty)),
    )
    for holder, duty in [*duties]:
        owner = "controller:pools" if duty.who.startswith("pool:") else duty.who
        until = None if duty.deadline_s is None else int(duty.deadline_s)
        # Of a reason that is too long, what has room whatever its characters.
        short = len(duty.reason.encode()) <= node.WHY_BYTES_MAX
        why = duty.reason if short else duty.reason[: node.WHY_BYTES_MAX // 4]
        wish = {
            node.work.name: _WORK[duty.mode],
            node.work_why.name: why,
            node.work_until.name: until,
        }
        for name, value in wish.items():
            if value is not None and duty.who != f"node:{holder}":
                connection.execute(
                    "INSERT INTO desired SELECT entities.id, ?, ?, ?, ?, store.revision"
                    " FROM entities, store WHERE entities.id = ? ON CONFLICT DO NOTHING",
                    (name, value, owner, wall_s, f"node:{holder}"),
                )
    connection.execute("DELETE FROM duties")


def desire_work(connection: sqlite3.Connection) -> None:
    """Desire of nodes' work what a file of an earlier version desires of their `slurm.use`."""
    connection.execute(
        "UPDATE OR IGNORE desired SET name = ?, value = ? WHERE name = 'slurm.use'"
        " AND value = 'drained'",
        (node.work.name, NodeWork.DRAINING.value),
    )
    connection.execute(
        "UPDATE OR IGNORE desired SET name = ? WHERE name = 'slurm.use' AND value = ?",
        (node.work.name, NodeWork.OPEN.value),
    )
    connection.execute("DELETE FROM desired WHERE name = 'slurm.use'")


# What is desired instead of each mode.
_WORK: Final = {
    "drain": NodeWork.DRAINING.value,
    "hold": NodeWork.HELD.value,
    "failed": NodeWork.FAILED.value,
}


class _Duty(msgspec.Struct, frozen=True):
    """Whether a holder took jobs, as versions before this wrote it."""

    mode: Literal["drain", "hold", "failed"]
    reason: str
    who: str
    deadline_s: float | None = None


def save_queue(connection: sqlite3.Connection, changes: QueueChanges) -> None:
    """Write what changed, whole or not at all."""
    arrays: set[int] = set()
    for key, job in changes.jobs.items():
        if job is None:
            connection.execute("DELETE FROM jobs WHERE id = ?", (key,))
        else:
            connection.execute(
                "INSERT INTO jobs VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET job = ?2",
                (key, _text(job) if job.array is None else _text_without_spec(job)),
            )
            if job.array is not None and job.array not in arrays:
                arrays.add(job.array)
                connection.execute(
                    "INSERT INTO array_specs VALUES (?, ?) ON CONFLICT DO NOTHING",
                    (job.array, _text(job.spec)),
                )
    for array in changes.arrays_gone:
        connection.execute("DELETE FROM array_specs WHERE array = ?", (array,))
    connection.execute(
        "UPDATE queue SET job_last = max(job_last, ?), token_last = max(token_last, ?)",
        (changes.job_last, changes.token_last),
    )


def _job(key: int, text: str, specs: dict[int, JobSpec]) -> Job:
    """A job, which shares its spec with the others of its array."""
    raw = msgspec.json.decode(text, type=dict[str, Any])
    if "spec" not in raw:
        raw["spec"] = specs[msgspec.convert(raw["array"], int)]
    job = msgspec.convert(raw, Job)
    if job.id != key:
        raise ValueError(f"it says that it is job {job.id}")
    return job


def _text_without_spec(job: Job) -> str:
    said = msgspec.structs.asdict(job)
    del said["spec"]
    return msgspec.json.encode(said).decode()


def _text(value: Job | JobSpec) -> str:
    return msgspec.json.encode(value).decode()
