"""A queue and a holder that die again and again, at any of a backend's operations, by a seed."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable
from hashlib import blake2b
from typing import Final, TypeVar

from haptera.conformance.report import CheckFailed
from haptera.model.errors import HapteraError
from haptera.queue.asking import ask
from haptera.queue.entry import Moment, StoredQueue, Submission
from haptera.queue.job import ENDED, Job, JobSpec, JobState, RetryClass, Size
from haptera.queue.queue import JobQueue
from haptera.queue.work import WorkAsked, WorkTold
from haptera.runtime import clock
from haptera.sdk.backends import EngineJob, JobBackend, JobName, JobOrder, JobStage, Partition
from haptera.sdk.backends.holder import BackendHolder

NAME: Final = "checked"
# So many times in a life something goes wrong, at about every seventh point.
FAULTS_MAX: Final = 12
FAULTY_OF_256: Final = 37
Answer = TypeVar("Answer")


class ParentKilled(BaseException):
    """The parent was killed: nothing of it goes on."""


class Life:
    """One life: a queue with its disk, a holder, and what goes wrong between these and an engine.

    The queue's own guarantees are checked all the while: what is released is durably running.
    """

    def __init__(self, make: Callable[[], JobBackend], seed: int) -> None:
        # The engine remembers the jobs of the lives before: each has a tag of its own.
        self.cluster = secrets.token_hex(6)
        self._make = make
        self._seed = seed
        self._points = 0
        self._faults = FAULTS_MAX
        self._disk: dict[int, Job] = {}
        self._cancelled_running: set[int] = set()
        self._early: list[JobName] = []
        self._last = (0, 0)
        self.deaths = 0
        self._rise()

    @property
    def jobs(self) -> dict[int, Job]:
        return self._queue.jobs

    def submit(self, command: tuple[str, ...], size: Size, retry: RetryClass) -> int:
        """Queue a job durably."""
        spec = JobSpec(command, size, 600, retry, NAME)
        (job,) = self._queue.submit(Submission(owner="check", name="job", spec=spec), _now())
        self._write()
        return job.id

    def cancel_once_running(self, *keys: int) -> None:
        """They are cancelled as soon as they run."""
        self._cancelled_running |= {*keys}

    async def settle(self, look_s: float, within_s: float) -> None:
        """Live until all jobs have ended, and the engine has none left that may run.

        Raises:
            CheckFailed: that does not come.
        """
        try:
            async with asyncio.timeout(within_s):
                while not await self._settled():
                    await self._turn()
                    assert not self._early, "released before the queue had it as running"
                    await asyncio.sleep(look_s)
        except TimeoutError:
            there = [f"{one.id} {one.state}" for one in self.jobs.values()]
            what = f"after {within_s:g} s not all is over: {', '.join(there)}"
            raise CheckFailed(what, "see what the engine says of its jobs") from None

    async def _settled(self) -> bool:
        if any(job.state not in ENDED for job in self.jobs.values()):
            return False
        self._faults = 0
        live = (JobStage.LIVE, JobStage.ON_HOLD)
        ours = [one for one in await self._make().jobs() if one.name.cluster == self.cluster]
        return not any(one.stage in live for one in ours)

    async def _turn(self) -> None:
        for key in self._cancelled_running:
            if self.jobs[key].state is JobState.RUNNING and self.jobs[key].stopping is None:
                self._queue.cancel(key, "it is to end", _now())
                self._write()
        try:
            await self._holder.turn()
        except ParentKilled:
            self.deaths += 1
            self._rise()

    def _rise(self) -> None:
        """A parent begins with what is on its disk."""
        job_last, token_last = self._last
        stored = StoredQueue(tuple(self._disk.values()), job_last, token_last)
        self._queue = JobQueue(stored, _now())
        faulty = _Faulty(self._make(), self)
        self._holder = BackendHolder(NAME, self.cluster, faulty, self, f"{self.deaths}")

    def held_by(self, name: str) -> dict[int, int]:
        holder = self._queue.holders.get(name)
        return {} if holder is None else holder.held

    async def ask(
        self, name: str, capacity: Size, asked: WorkAsked, backend: str | None = None
    ) -> WorkTold:
        told = ask(self._queue, name, capacity, asked, _now(), backend)
        self.point()
        self._write()
        self.point()
        return told

    def _write(self) -> None:
        changes = self._queue.changes()
        self._disk |= {key: job for key, job in changes.jobs.items() if job is not None}
        self._last = changes.job_last, changes.token_last

    def note_release(self, job: EngineJob) -> None:
        """Nothing begins that is not running by the disk, or over there already."""
        stored = self._disk[job.name.job]
        if stored.token != job.name.token or stored.state is JobState.LOCKED:
            self._early.append(job.name)

    def point(self) -> None:
        """The parent is killed here, perhaps."""
        if self.fails():
            raise ParentKilled

    def fails(self) -> bool:
        """True if something goes wrong at the next point, by the seed."""
        self._points += 1
        drawn = blake2b(f"{self._seed} {self._points}".encode(), digest_size=1).digest()[0]
        failing = self._faults > 0 and drawn < FAULTY_OF_256
        self._faults -= failing
        return failing


class _Faulty:
    """A backend whose operations are not done, or not answered, or the last that a parent did."""

    def __init__(self, real: JobBackend, life: Life) -> None:
        self._real = real
        self._life = life
        self._seen: dict[str, EngineJob] = {}

    async def jobs(self) -> Iterable[EngineJob]:
        jobs = await self._done(self._real.jobs)
        self._seen = {one.key: one for one in jobs}
        return jobs

    async def sizes(self) -> Iterable[Partition]:
        return await self._done(self._real.sizes)

    async def submit(self, order: JobOrder, partition: str) -> None:
        named = {**order.environment, "HAPTERA_JOB_NAME": str(order.name)}
        known = JobOrder(order.name, order.command, order.size, order.time_limit_s, named)
        await self._done(lambda: self._real.submit(known, partition))

    async def release(self, key: str) -> None:
        self._life.note_release(self._seen[key])
        await self._done(lambda: self._real.release(key))

    async def cancel(self, key: str) -> None:
        await self._done(lambda: self._real.cancel(key))

    async def _done(self, operation: Callable[[], Awaitable[Answer]]) -> Answer:
        self._life.point()
        self._refuse()
        answer = await operation()
        self._refuse()
        self._life.point()
        return answer

    def _refuse(self) -> None:
        if self._life.fails():
            raise HapteraError("the engine does not answer")


def _now() -> Moment:
    return Moment(clock.now_ns(), clock.wall_s())
