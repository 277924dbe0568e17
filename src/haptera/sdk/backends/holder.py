"""Jobs of the queue that a backend runs: a holder like a node's agent, without a memory of its own.

A job is submitted on hold, which can be done again where the answer was lost, for its name, with
its token, is looked up first. It is released only once the queue has it as running, durably. So
after a loss of either side the engine's list of jobs says all: what is ours and wanted goes on,
what is not is cancelled.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Final, Protocol, assert_never

from haptera.model.errors import HapteraError
from haptera.queue.job import CPUS_MAX, MEMORY_MB_MAX, Size
from haptera.queue.work import (
    REASON_CHARS_MAX,
    Assignment,
    Holding,
    HoldingPhase,
    WorkAsked,
    WorkTold,
)
from haptera.sdk.backends.protocol import (
    EngineJob,
    JobBackend,
    JobName,
    JobOrder,
    JobRefusedError,
    JobReturnedError,
    JobStage,
    Partition,
)
from haptera.sdk.boundary import Boundary

# How often an engine is asked while it has something of ours, and how long work is waited for else.
LOOK_EVERY_MS: Final = 1_000
WAIT_MS: Final = 5_000
AWAY_S: Final = 2.0
# So many are with an engine at a time: its own queue holds them, and no more is gained by it.
SUBMITTED_MAX: Final = 2_000
# How much of a job's owner is in an engine's hands: all that it may ever have.
PLENTY: Final = Size(CPUS_MAX, MEMORY_MB_MAX)
# Of several jobs of one name, the first of these counts; if in doubt, nothing begins anew.
_FURTHEST: Final = (JobStage.LIVE, JobStage.ENDED, JobStage.RETURNED, JobStage.ON_HOLD)
_UNSETTLED: Final = (JobStage.LIVE, JobStage.ON_HOLD)
# An engine that does not answer: nobody's fault here.
_AWAY: Final = (HapteraError, OSError)

_log = logging.getLogger(__name__)


class AskedQueue(Protocol):
    """The queue, as far as a holder asks it."""

    def held_by(self, name: str) -> Mapping[int, int]:
        """The jobs that a holder has, by token."""
        ...

    async def ask(
        self, name: str, capacity: Size, asked: WorkAsked, backend: str | None = None
    ) -> WorkTold:
        """A holder asks for work.

        Raises:
            HapteraError: the answer cannot be written.
        """
        ...


class BackendHolder:
    """The holder of the jobs of one backend, `name`; `cluster` is this cluster's tag in job names.

    `boot` is another one of each holder.
    """

    def __init__(
        self, name: str, cluster: str, backend: JobBackend, queue: AskedQueue, boot: str
    ) -> None:
        self.holder = f"backend:{name}"
        self._name = name
        self._cluster = cluster
        self._backend = backend
        self._queue = queue
        self._boot = boot
        self._number = 0
        self._there: dict[int, EngineJob] = {}
        self._twice: list[EngineJob] = []
        # Noted as ended: the engine goes on telling of them for a while.
        self._over: set[int] = set()
        self._stopping: set[int] = set()
        self._faults: dict[int, Holding] = {}

    async def run(self) -> None:
        """Take work and have it run, until cancelled; what the engine has goes on."""
        while True:
            pause_s = await self.turn()
            await asyncio.sleep(pause_s)

    async def turn(self) -> float:
        """Look, ask, and follow the answer; how many seconds to leave the engine alone then."""
        with Boundary(self.holder) as looked:
            self._see(await self._backend.jobs())
        if looked.error is not None:
            # What it has may well run: it stays ours.
            await self._ask(self._held_before(), takes=False, wait_ms=0)
            return AWAY_S
        held = self._held()
        unsettled = any(one.phase is not HoldingPhase.RUNNING for one in held.values())
        wait_ms = 0 if unsettled or self._on_hold() else LOOK_EVERY_MS if held else WAIT_MS
        told = await self._ask(held, takes=len(held) < SUBMITTED_MAX, wait_ms=wait_ms)
        return AWAY_S if told is None else await self._follow(held, told)

    def _held_before(self) -> dict[int, Holding]:
        """The jobs that the engine has by the queue's word."""
        held = self._queue.held_by(self.holder)
        return {token: Holding(job, token, HoldingPhase.LOCKED) for token, job in held.items()}

    def _see(self, jobs: Iterable[EngineJob]) -> None:
        """Note our jobs among the engine's, by token.

        Of one name there are two where the answer to the first was lost, and it came after all.
        """
        self._there, self._twice = {}, []
        for job in sorted(jobs, key=_furthest):
            if job.name.cluster != self._cluster:
                continue
            if self._there.setdefault(job.name.token, job) is not job and job.stage in _UNSETTLED:
                self._twice.append(job)
        self._over &= self._there.keys()
        self._stopping &= self._there.keys()

    def _held(self) -> dict[int, Holding]:
        there = {
            token: holding_of(job, stopping=token in self._stopping)
            for token, job in self._there.items()
            if token not in self._over
        }
        return self._faults | there

    def _on_hold(self) -> list[int]:
        """Tokens of jobs that may begin as soon as the queue says so."""
        return [
            token
            for token, job in self._there.items()
            if job.stage is JobStage.ON_HOLD and token not in self._over | self._stopping
        ]

    async def _ask(
        self, held: Mapping[int, Holding], *, takes: bool, wait_ms: int
    ) -> WorkTold | None:
        self._number += 1
        asked = WorkAsked(self._boot, self._number, tuple(held.values()), takes, wait_ms)
        try:
            return await self._queue.ask(self.holder, PLENTY, asked, self._name)
        except HapteraError as error:
            _log.warning("%s: %s", self.holder, error)
            return None

    async def _follow(self, held: Mapping[int, Holding], told: WorkTold) -> float:
        """Follow the queue's answer; what fails is asked again, for nothing here remembers it."""
        for token in told.noted:
            if held[token].phase not in (HoldingPhase.RUNNING, HoldingPhase.STOPPING):
                self._faults.pop(token, None)
                self._over.add(token)
        with Boundary(self.holder) as followed:
            for job in self._twice:
                await self._cancel(job, "it is there twice")
            for order in told.stop:
                if (stopped := self._there.get(order.token)) is not None:
                    await self._cancel(stopped, order.reason)
                    self._stopping.add(order.token)
            for token in set(told.noted).intersection(self._on_hold()):
                await self._backend.release(self._there[token].key)
            if told.work:
                partitions = list(await self._backend.sizes())
                for work in told.work:
                    await self._submit(work, partitions)
        return 0.0 if followed.error is None else AWAY_S

    async def _cancel(self, job: EngineJob, reason: str) -> None:
        _log.info("%s: cancels %s (%s): %s", self.holder, job.name, job.key, reason)
        await self._backend.cancel(job.key)

    async def _submit(self, work: Assignment, partitions: Iterable[Partition]) -> None:
        """Submit what was not there; one that is refused is over, with the engine's words."""
        size, phase = work.spec.size, HoldingPhase.REFUSED
        partition = fitting(partitions, size)
        if work.spec.user is not None:
            self._fail(work, "a backend runs all jobs as its own user", phase)
            return
        if partition is None:
            self._fail(work, f"no partition of {self.holder} has nodes with {size}", phase)
            return
        name = JobName(self._cluster, work.job, work.token)
        limit_s, known = work.spec.time_limit_s, _environment(work)
        order = JobOrder(name, work.spec.command, size, limit_s, known)
        try:
            # What no later try would change is its end, and that of no other.
            with Boundary(f"job {work.job}", _AWAY) as tried:
                await self._backend.submit(order, partition.name)
            fault = tried.fault
        except JobReturnedError as error:
            fault, phase = str(error), HoldingPhase.RETURNED
        except JobRefusedError as error:
            fault = str(error)
        if fault is None:
            return
        # It said no, or did not answer: where it answers now, it has said no.
        self._see(await self._backend.jobs())
        if work.token not in self._there:
            self._fail(work, fault, phase)

    def _fail(self, work: Assignment, reason: str, phase: HoldingPhase) -> None:
        reason = reason[:REASON_CHARS_MAX]
        self._faults[work.token] = Holding(work.job, work.token, phase, None, reason)


def holding_of(job: EngineJob, *, stopping: bool) -> Holding:
    """The stage of an engine's job, as the queue acts on it."""
    match job.stage:
        case JobStage.RETURNED:
            phase = HoldingPhase.RETURNED
        case JobStage.ENDED:
            phase = HoldingPhase.ENDED
        case JobStage.ON_HOLD | JobStage.LIVE:
            phase = HoldingPhase.STOPPING if stopping else HoldingPhase.RUNNING
        case _:
            assert_never(job.stage)
    reason = None if job.reason is None else job.reason[:REASON_CHARS_MAX]
    return Holding(job.name.job, job.name.token, phase, job.status, reason)


def fitting(partitions: Iterable[Partition], size: Size) -> Partition | None:
    """The partition with the smallest nodes that have room: where sizes have one each, its own."""
    able = [one for one in partitions if one.size.fits(size)]
    return min(able, key=lambda one: (one.size, one.name), default=None)


def _furthest(job: EngineJob) -> tuple[int, bool]:
    return _FURTHEST.index(job.stage), job.status is None


def _environment(work: Assignment) -> Mapping[str, str]:
    known = {
        "HAPTERA_JOB": work.job,
        "HAPTERA_JOB_TOKEN": work.token,
        "HAPTERA_JOB_ARRAY": work.array,
        "HAPTERA_JOB_INDEX": work.index,
    }
    return {name: str(value) for name, value in known.items() if value is not None}
