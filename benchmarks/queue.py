"""What the queue of jobs costs: a decision among many jobs, and a job from its asking to its end.

    python -m benchmarks.queue [JOBS]
    unshare -n python -m benchmarks.queue processes     needs root, and Slurm

First the pure queue: how long an asking takes with so many jobs queued, in 10 lanes, and what each
takes of memory. Then with its store on disk: 50 and 500 askers, each of which takes one job at a
time, asks whether it may begin, reports its end and asks for the next; each step is durable before
it is answered. The baseline, in the same run, is a bare SQLite queue on the same disk (WAL,
synchronous = FULL): one UPDATE … RETURNING that takes the first job by priority, one that says
that it runs, one that says that it is done. TLS and processes of jobs are not in these figures.

They are in those of `processes`: on idle nodes, how long a job takes from before it is submitted
to its own first line, one after the other; then many, each submitted by itself. In a lab, by the
API; and on the installed Slurm, by sbatch.
"""

import asyncio
import random
import resource
import sqlite3
import statistics
import sys
import tempfile
from pathlib import Path
from time import perf_counter_ns, process_time_ns, time_ns

from benchmarks.head_of_line import POLL_S, SMALL, Submit, folder, here, on_slurm
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.model.changes import Desired
from haptera.queue.asking import ask
from haptera.queue.entry import Moment, StoredQueue, Submission
from haptera.queue.job import JobSpec, Size
from haptera.queue.queue import JobQueue
from haptera.queue.work import Holding, HoldingPhase, WorkAsked, WorkTold
from haptera.runtime import clock
from haptera.runtime.store.store import Store

QUEUED = 100_000
LANES = 10
ASKERS = (50, 500)
JOBS = 2_000
DECISIONS = 2_000
ONE_BY_ONE = 20
MANY = 100
MS = 1_000_000
NODE = Size(4, 8_192)
ATTRIBUTES = {"cpus": "1", "memory_mb": "1024"}


def main() -> None:
    if sys.argv[1:] == ["processes"]:
        asyncio.run(processes())
        return
    decisions(50)
    decisions(500)
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else JOBS
    with tempfile.TemporaryDirectory() as folder:
        bare(Path(folder) / "bare.db", jobs)
        for askers in ASKERS:
            asyncio.run(stored(Path(folder) / f"of{askers}", askers, jobs))


async def processes() -> None:
    async with folder() as directory, here(directory) as submit:
        await submitted("a lab", directory, submit)
    async with folder() as directory, on_slurm(directory, "per-size", "backfill") as submit:
        await submitted("Slurm", directory, submit)


async def submitted(what: str, directory: Path, submit: Submit) -> None:
    """Jobs one after the other, then many; each writes down when it begins."""
    log, took_ns = directory / "began", list[int]()

    async def began(count: int) -> list[int]:
        while len(lines := log.read_text().split()) < count:  # noqa: ASYNC110  a file tells nobody
            await asyncio.sleep(POLL_S)
        return [*map(int, lines)]

    command = f"date +%s%N >>{log}"
    log.touch()
    for at in range(ONE_BY_ONE):
        asked = time_ns()
        await submit("one", command, 1, SMALL, 0)
        took_ns.append((await began(at + 1))[-1] - asked)
    asked = time_ns()
    for _ in range(MANY):
        await submit("many", command, 1, SMALL, 0)
    all_submitted = time_ns()
    last = max(await began(ONE_BY_ONE + MANY))
    p50, worst = statistics.median(took_ns) / MS, max(took_ns) / MS
    print(
        f"{what}: from submission to the first line p50 {p50:.0f} ms, at most {worst:.0f} ms;"
        f" {MANY} jobs submitted in {(all_submitted - asked) / 1e9:.1f} s,"
        f" begun in {(last - asked) / 1e9:.1f} s"
    )


def decisions(holders: int) -> None:
    """Each asks in turn, and has finished all that it had when it asks again."""
    rng, now = random.Random(1), Moment(0, 0.0)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    queue = JobQueue(StoredQueue(), now)
    for at in range(LANES):
        size = Size(1 + at % 4, 256 * (at + 1))
        for _ in range(QUEUED // LANES // 100):
            spec = JobSpec(("true",), size, 60)
            priority = rng.randrange(100)
            queue.submit(
                Submission(owner="eve", name="it", spec=spec, priority=priority, count=100), now
            )
    queue.changes()
    taken_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    held: dict[str, tuple[Holding, ...]] = {}
    took_ns = []
    for number in range(DECISIONS):
        name = f"n{number % holders}"
        over = held.get(name, ())
        began = process_time_ns()
        told = ask(queue, name, NODE, WorkAsked("b", number, over), now)
        took_ns.append(process_time_ns() - began)
        queue.changes()
        held[name] = tuple(Holding(one.job, one.token, HoldingPhase.ENDED, 0) for one in told.work)
    p50, p99 = quantiles(took_ns)
    print(
        f"{QUEUED:,} queued, {holders} holders: an asking p50 {p50 / MS:.2f} ms,"
        f" p99 {p99 / MS:.2f} ms of CPU; {taken_kb / QUEUED:.2f} kB a job more than before"
    )


def bare(place: Path, jobs: int) -> None:
    connection = sqlite3.connect(place, isolation_level=None)
    connection.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "CREATE TABLE jobs (id INTEGER PRIMARY KEY, priority INTEGER, state TEXT);"
        "CREATE INDEX waiting ON jobs (state, priority DESC, id);"
    )
    rows = [(at % 100, "queued") for at in range(jobs)]
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO jobs (priority, state) VALUES (?, ?)", rows)
    connection.execute("COMMIT")
    take = (
        "UPDATE jobs SET state = 'locked' WHERE id = (SELECT id FROM jobs WHERE state = 'queued'"
        " ORDER BY priority DESC, id LIMIT 1) RETURNING id"
    )
    took_ns, began = [], perf_counter_ns()
    for _ in range(jobs):
        asked = perf_counter_ns()
        (key,) = connection.execute(take).fetchall()
        connection.execute("UPDATE jobs SET state = 'running' WHERE id = ?", key)
        took_ns.append(perf_counter_ns() - asked)
        connection.execute("UPDATE jobs SET state = 'complete' WHERE id = ?", key)
    say("a bare SQLite queue, one asker", jobs, perf_counter_ns() - began, took_ns)


class NoNodes:
    """A cluster of which nothing is declared: askers have what their attributes say."""

    def nodes(self) -> list[str]:
        return []

    def attributes_of(self, _node: str) -> dict[str, str]:
        return ATTRIBUTES

    def desired_of(self, _node: str) -> dict[str, Desired]:
        return {}

    def work_of(self, _node: str) -> None:
        return None


async def stored(folder: Path, askers: int, jobs: int) -> None:
    store = Store.open(folder / "state.db", deliver=lambda _: None, wall_s=clock.wall_s)
    queue = ParentQueue(store, NoNodes(), lambda done: done())
    spec = JobSpec(("true",), Size(1, 256))
    one = Submission(owner="eve", name="it", spec=spec, count=jobs)
    await queue.submit(one)
    took_ns: list[int] = []
    began = perf_counter_ns()
    async with asyncio.TaskGroup() as tasks:
        for at in range(askers):
            tasks.create_task(work(queue, f"n{at}", took_ns))
    say(f"the queue, {askers} askers", jobs, perf_counter_ns() - began, took_ns)
    store.close()


async def work(queue: ParentQueue, name: str, took_ns: list[int]) -> None:
    """Take one job after another until there is none."""
    number, held = 0, tuple[Holding, ...]()

    async def tell() -> WorkTold:
        nonlocal number
        number += 1
        return await queue.ask_of_node(name, WorkAsked("b", number, held))

    while True:
        asked = perf_counter_ns()
        told = await tell()
        if not told.work:
            return
        held = tuple(Holding(one.job, one.token, HoldingPhase.RUNNING) for one in told.work)
        await tell()
        took_ns.append(perf_counter_ns() - asked)
        held = tuple(Holding(one.job, one.token, HoldingPhase.ENDED, 0) for one in held)


def say(what: str, jobs: int, all_ns: int, took_ns: list[int]) -> None:
    p50, p99 = quantiles(took_ns)
    print(
        f"{what}: {jobs / (all_ns / 1e9):,.0f} jobs/s,"
        f" from asking to may-begin p50 {p50 / MS:.1f} ms, p99 {p99 / MS:.1f} ms"
    )


def quantiles(took_ns: list[int]) -> tuple[float, float]:
    found = statistics.quantiles(took_ns, n=100)
    return found[49], found[98]


if __name__ == "__main__":
    main()
