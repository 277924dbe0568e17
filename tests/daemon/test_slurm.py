"""Jobs of the queue on a real Slurm, whatever either side loses; looked at from outside."""

import asyncio
import os
import secrets
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from haptera.conformance.backends import CHECKS, BackendSubject, check_backend
from haptera.conformance.report import CheckVerdict
from haptera.core.state.table import EntityTable
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.modules.slurm.jobs import Slurm
from haptera.queue.entry import Submission
from haptera.queue.job import Job, JobSpec, JobState, RetryClass, Size
from haptera.runtime.clock import wall_s
from haptera.runtime.store.store import Store
from haptera.sdk.backends import BackendTerms, JobName, JobOrder, JobStage
from haptera.sdk.backends.holder import BackendHolder
from tests.lab.rig import until

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = "c0ffee"
WITHIN_S = 180.0
PORTS = 20
SMALL = Size(1, 64)

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.campaign,
    pytest.mark.skipif(os.geteuid() != 0, reason="a Slurm of one's own needs root"),
    pytest.mark.skipif(shutil.which("slurmctld") is None, reason="Slurm is not installed"),
]


class PrivateSlurm:
    """A Slurm of this test's own, and the log that its jobs write one line each to."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.effects = directory / "effects"
        self.effects.touch()
        self.conf = directory / "slurm.conf"
        self.go = directory / "go"
        self.until_go = f"until [ -e {self.go} ]; do sleep 0.1; done"
        self._port = next(free_blocks())

    def has_saved(self) -> bool:
        """Whether slurmctld has written its state since the last job began."""
        saved = self.directory / "state/job_state"
        if saved.exists() and saved.stat().st_mtime > self.effects.stat().st_mtime + 1:
            return True
        # It saves what has changed: the last time may have been just after a job began.
        self.ask("scontrol", "update", "jobid=1", "comment=changed")
        return False

    def start(self, **environment: str) -> None:
        self._do("start", {"PORT": str(self._port), **environment})

    def stop(self) -> None:
        self._do("stop", {})

    def ask(self, *command: str) -> str:
        told = subprocess.run(
            command, env={**os.environ, "SLURM_CONF": str(self.conf)}, capture_output=True
        )
        assert told.returncode == 0, told.stderr
        return told.stdout.decode()

    def begun(self) -> Counter[str]:
        """How often each `job-token` began."""
        return Counter(self.effects.read_text().split())

    def client(self) -> Slurm:
        return Slurm(BackendTerms(str(self.conf), str(self.directory)))

    def _do(self, what: str, environment: dict[str, str]) -> None:
        command = [str(ROOT / "tools/private-slurm"), what, str(self.directory)]
        subprocess.run(command, env={**os.environ, **environment}, check=True, timeout=120)


def free_blocks() -> Iterator[int]:
    """First ports of blocks that nobody listens in: one for slurmctld, and for each slurmd."""
    blocks = range(20_000, 32_000, PORTS)
    begin = os.getpid() % len(blocks)
    for first in (*blocks[begin:], *blocks[:begin]):
        if all(map(is_free, range(first, first + PORTS))):
            yield first


def is_free(port: int) -> bool:
    with socket.socket() as one, suppress(OSError):
        one.bind(("", port))
        return True
    return False


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[PrivateSlurm]:
    one = PrivateSlurm(tmp_path)
    try:
        one.start()
        yield one
    finally:
        one.stop()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    one = Store.open(tmp_path / "state.db", deliver=lambda _: None, wall_s=wall_s)
    yield one
    one.close()


NO_PARTITION = "no partition of backend:slurm has nodes with 64 CPUs, 64 MB"


class Parent:
    """A parent's queue with its backend, until it is killed."""

    def __init__(self, slurm: PrivateSlurm, store: Store) -> None:
        self.slurm = slurm
        self.jobs = ParentQueue(store, EntityTable({}), lambda done: done())
        backend = BackendHolder("slurm", CLUSTER, slurm.client(), self.jobs, secrets.token_hex(4))
        self._tasks = [asyncio.create_task(one.run()) for one in (self.jobs, backend)]

    async def kill(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def submit(
        self, script: str, *, size: Size = SMALL, retry: RetryClass = RetryClass.NEVER
    ) -> int:
        line = f'echo "$HAPTERA_JOB-$HAPTERA_JOB_TOKEN" >> {self.slurm.effects}; {script}'
        spec = JobSpec(("sh", "-c", line), size, 600, retry, "slurm")
        (job,) = await self.jobs.submit(Submission(owner="user:eve", name="j", spec=spec))
        return job.id

    async def ended(self, *keys: int) -> list[Job]:
        await until(lambda: all(self.job(key).ended_s is not None for key in keys), WITHIN_S)
        return [self.job(key) for key in keys]

    def job(self, key: int) -> Job:
        return self.jobs.queue.jobs[key]


@asynccontextmanager
async def a_parent(slurm: PrivateSlurm, store: Store) -> AsyncIterator[Parent]:
    one = Parent(slurm, store)
    try:
        yield one
    finally:
        await one.kill()


def told(job: Job) -> tuple[JobState, int | None, str | None]:
    return job.state, job.status, job.reason


async def test_jobs_of_all_sizes_run_once_and_end_as_they_ended(
    slurm: PrivateSlurm, store: Store
) -> None:
    async with a_parent(slurm, store) as parent:
        well = [await parent.submit("true") for _ in range(12)]
        large = await parent.submit("echo said; exit 3", size=Size(4, 2_048))
        killed = await parent.submit("kill -9 $$")
        huge = await parent.submit("true", size=Size(64, 64))

        ends = await parent.ended(*well, large, killed, huge)

        assert [told(one) for one in ends] == [
            *[(JobState.COMPLETE, 0, None)] * 12,
            (JobState.FAILED, 3, None),
            (JobState.FAILED, -9, None),
            (JobState.CANCELLED, None, NO_PARTITION),
        ]
        assert ends[-1].locks == 1
        ran = ends[:-1]
        assert slurm.begun() == Counter(f"{one.id}-{one.token}" for one in ran)
        name = JobName(CLUSTER, large, ends[12].token or 0)
        assert (slurm.directory / f"{name}.out").read_text() == "said\n"


async def test_slurm_is_as_a_backend_must_be(slurm: PrivateSlurm) -> None:
    subject = BackendSubject(slurm.client, slurm.directory / "checked", 0.5, WITHIN_S, range(2))
    report = await check_backend(subject)
    wrong = [one for one in report.checks if one.verdict is not CheckVerdict.PASSED]
    assert wrong == []
    assert len(report.checks) == len(CHECKS)


async def test_what_slurm_refuses_is_over_at_once_in_its_own_words(
    slurm: PrivateSlurm, store: Store
) -> None:
    async with a_parent(slurm, store) as parent:
        slurm.ask("scontrol", "update", "PartitionName=small", "State=INACTIVE")
        (job,) = await parent.ended(await parent.submit("true"))
        assert (job.state, job.locks, slurm.begun()) == (JobState.CANCELLED, 1, Counter())
        assert job.reason is not None
        assert job.reason.startswith("sbatch: ")


async def test_a_job_that_is_cancelled_ends_in_slurm_too(slurm: PrivateSlurm, store: Store) -> None:
    async with a_parent(slurm, store) as parent:
        key = await parent.submit("exec sleep 600")
        await until(lambda: bool(slurm.begun()), WITHIN_S)
        await parent.jobs.cancel([key], "not wanted any more")
        (job,) = await parent.ended(key)
        assert (job.state, job.reason) == (JobState.CANCELLED, "not wanted any more")
        # It is shown for as long as its processes take to end.
        await until(lambda: slurm.ask("squeue", "--noheader") == "", WITHIN_S)


async def test_a_parent_that_was_killed_finds_what_slurm_did_meanwhile(
    slurm: PrivateSlurm, store: Store
) -> None:
    async with a_parent(slurm, store) as parent:
        keys = [await parent.submit("sleep 2") for _ in range(6)]
        await until(lambda: bool(slurm.begun()), WITHIN_S)
    await asyncio.to_thread(wait_until_empty, slurm)
    async with a_parent(slurm, store) as parent:
        ends = await parent.ended(*keys)
        assert {told(one) for one in ends} == {(JobState.COMPLETE, 0, None)}
        assert slurm.begun() == Counter(f"{one.id}-{one.token}" for one in ends)


def wait_until_empty(slurm: PrivateSlurm) -> None:
    """All that was released is over; what is on hold waits for us."""
    while slurm.ask("squeue", "--noheader", "--states=running,completing"):
        pass


async def test_a_slurmctld_that_was_killed_goes_on_with_what_it_had_saved(
    slurm: PrivateSlurm, store: Store
) -> None:
    async with a_parent(slurm, store) as parent:
        keys = [await parent.submit(slurm.until_go) for _ in range(8)]
        # It has room for four; its state is on disk some seconds later.
        await until(lambda: len(slurm.begun()) == 4 and slurm.has_saved(), WITHIN_S)
        os.kill(int((slurm.directory / "slurmctld.pid").read_text()), 9)
        await asyncio.to_thread(slurm.start)
        slurm.go.touch()
        ends = await parent.ended(*keys)
        assert {told(one) for one in ends} == {(JobState.COMPLETE, 0, None)}
        assert slurm.begun() == Counter(f"{one.id}-{one.token}" for one in ends)


async def test_what_slurm_forgot_is_cancelled_or_queued_again_by_its_retry_class(
    slurm: PrivateSlurm, store: Store
) -> None:
    async with a_parent(slurm, store) as parent:
        never = await parent.submit(slurm.until_go)
        again = await parent.submit(slurm.until_go, retry=RetryClass.LOST)
        await until(lambda: len(slurm.begun()) == 2, WITHIN_S)
        await asyncio.to_thread(slurm.stop)
        slurm.go.touch()
        await asyncio.to_thread(slurm.start, CLEAN="yes")
        lost, second = await parent.ended(never, again)
        why = (
            "backend:slurm does not know it any more while it ran, and it must not run"
            " again (retry: never)"
        )
        assert told(lost) == (JobState.CANCELLED, None, why)
        assert told(second) == (JobState.COMPLETE, 0, None)
        assert second.locks == 2
        assert set(slurm.begun().values()) == {1}


async def test_an_orphan_is_cancelled_and_what_is_another_clusters_is_not(
    slurm: PrivateSlurm, store: Store
) -> None:
    client = slurm.client()
    for name in (JobName(CLUSTER, 7, 70), JobName("ab", 7, 70)):
        await client.submit(JobOrder(name, ("sleep", "600"), SMALL, None, {}), "small")
    for job in await client.jobs():
        assert job.stage is JobStage.ON_HOLD
        await client.release(job.key)
    async with a_parent(slurm, store):
        kept = "haptera-ab-7-70\n"
        await until(lambda: slurm.ask("squeue", "--noheader", "--format=%j") == kept, WITHIN_S)
