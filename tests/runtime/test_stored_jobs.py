"""The queue on the disk: an array's spec is there once, however many jobs it has."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from haptera.queue.entry import Moment, StoredQueue, Submission
from haptera.queue.job import JobSpec, Size
from haptera.queue.queue import ENDED_MAX, JobQueue
from haptera.runtime.store.jobs_sql import desire_duties, desire_work, load_queue, save_queue
from haptera.runtime.store.schema_sql import open_database

NOW = Moment(0, 1_700_000_000.0)
LONG = Submission(
    owner="user:eve", name="sum", spec=JobSpec(("sh", "-c", "x" * 30_000), Size(1, 512))
)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(open_database(tmp_path / "state.db")) as connection:
        yield connection


def submitted(queue: JobQueue, count: int | None) -> list[int]:
    one = Submission(owner=LONG.owner, name=LONG.name, spec=LONG.spec, count=count)
    return [job.id for job in queue.submit(one, NOW)]


def saved(state: sqlite3.Connection, queue: JobQueue) -> None:
    state.execute("BEGIN")
    save_queue(state, queue.changes())
    state.execute("COMMIT")


def kept_bytes(state: sqlite3.Connection) -> int:
    tables = "SELECT job FROM jobs UNION ALL SELECT spec FROM array_specs"
    return sum(len(text) for (text,) in state.execute(tables))


def test_an_array_keeps_one_spec_on_the_disk_and_in_memory(state: sqlite3.Connection) -> None:
    queue = JobQueue(StoredQueue(), NOW)
    submitted(queue, 1_000)
    submitted(queue, None)
    saved(state, queue)

    assert kept_bytes(state) < 500_000
    loaded = load_queue(state)
    assert {job.id: job for job in loaded.jobs} == queue.jobs
    assert len({id(job.spec) for job in loaded.jobs}) == 2


def test_what_was_changed_and_loaded_again_keeps_its_spec(state: sqlite3.Connection) -> None:
    queue = JobQueue(StoredQueue(), NOW)
    first, *_, last = submitted(queue, 3)
    saved(state, queue)
    queue = JobQueue(load_queue(state), NOW)
    queue.prioritize(last, 9)
    queue.cancel(first, "by eve", NOW)
    saved(state, queue)

    assert {job.id: job for job in load_queue(state).jobs} == queue.jobs


def test_the_spec_of_an_array_goes_with_its_last_job(state: sqlite3.Connection) -> None:
    queue = JobQueue(StoredQueue(), NOW)
    arrays = [submitted(queue, 2), submitted(queue, ENDED_MAX)]
    saved(state, queue)
    queue = JobQueue(load_queue(state), NOW)
    left = "SELECT array FROM array_specs"

    for key in [arrays[0][0], *arrays[1][:-1]]:
        queue.cancel(key, "by eve", NOW)
    saved(state, queue)
    assert len(state.execute(left).fetchall()) == 2  # of the first one a job waits still

    queue.cancel(arrays[0][1], "by eve", NOW)
    for key in submitted(queue, ENDED_MAX):
        queue.cancel(key, "by eve", NOW)
    saved(state, queue)
    assert state.execute(left).fetchall() == [(arrays[1][0],), (arrays[1][-1] + 1,)]
    assert {job.id: job for job in load_queue(state).jobs} == queue.jobs


def test_jobs_that_an_earlier_version_wrote_are_read(state: sqlite3.Connection) -> None:
    queue = JobQueue(StoredQueue(), NOW)
    submitted(queue, 3)
    for key, job in queue.jobs.items():
        whole = msgspec.json.encode(job).decode()
        state.execute("INSERT INTO jobs VALUES (?, ?)", (key, whole))

    assert load_queue(state).jobs == tuple(queue.jobs.values())


def test_what_kept_jobs_from_nodes_in_an_earlier_version_is_desired(
    state: sqlite3.Connection,
) -> None:
    for name in ("n1", "n2", "n3", "n4"):
        state.execute("INSERT INTO entities VALUES (?, '{}', 'site', 1)", (f"node:{name}",))
    state.execute("INSERT INTO desired VALUES ('node:n4', 'work', 'open', 'site', 1, 1)")
    duties = {
        "n1": {"mode": "drain", "reason": "disk", "who": "user:eve", "deadline_s": 9.5},
        "n2": {"mode": "hold", "reason": "é" * 150, "who": "pool:burst", "deadline_s": None},
        "n3": {"mode": "failed", "reason": "its own word", "who": "node:n3", "deadline_s": None},
        "n4": {"mode": "failed", "reason": "", "who": "user:eve", "deadline_s": None},
        "gone": {"mode": "hold", "reason": "", "who": "user:eve", "deadline_s": None},
    }
    for name, duty in duties.items():
        text = msgspec.json.encode(duty).decode()
        state.execute("INSERT INTO duties VALUES (?, ?)", (name, text))

    desire_duties(state, 5.0)
    desire_duties(state, 6.0)

    assert state.execute("SELECT count(*) FROM duties").fetchone() == (0,)
    found = "SELECT entity, name, value, owner FROM desired ORDER BY entity, name"
    assert state.execute(found).fetchall() == [
        ("node:n1", "work", "draining", "user:eve"),
        ("node:n1", "work_until", 9, "user:eve"),
        ("node:n1", "work_why", "disk", "user:eve"),
        ("node:n2", "work", "held", "controller:pools"),
        ("node:n2", "work_why", "é" * 50, "controller:pools"),
        ("node:n4", "work", "open", "site"),
        ("node:n4", "work_why", "", "user:eve"),
    ]


def test_what_was_desired_of_slurm_in_an_earlier_version_is_desired_of_the_node_s_work(
    state: sqlite3.Connection,
) -> None:
    insert = "INSERT INTO desired VALUES (?, ?, ?, 'user:eve', 1, 1)"
    for name in ("n1", "n2", "n3", "n4"):
        state.execute("INSERT INTO entities VALUES (?, '{}', 'site', 1)", (f"node:{name}",))
    for name, value in {"n1": "drained", "n2": "open", "n3": "drained", "n4": "down"}.items():
        state.execute(insert, (f"node:{name}", "slurm.use", value))
    state.execute(insert, ("node:n3", "work", "held"))

    desire_work(state)

    found = "SELECT entity, name, value, owner FROM desired ORDER BY entity, name"
    assert state.execute(found).fetchall() == [
        ("node:n1", "work", "draining", "user:eve"),
        ("node:n2", "work", "open", "user:eve"),
        ("node:n3", "work", "held", "user:eve"),
    ]
