"""Jobs of the queue that Slurm runs: a holder like a node's agent, whose memory is Slurm's own.

Each job's name in Slurm has the cluster, the job and its token. A job is submitted on hold, which
can be done again where the answer was lost, for its name is looked up first. It is released only
once the queue has it as running, durably. So after a loss of either side the list of Slurm's jobs
by name says all: what is ours and wanted goes on, what is not is cancelled.
"""

import asyncio
import logging
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from haptera.daemon.queue.parent_side import ParentQueue
from haptera.model.errors import HapteraError
from haptera.modules.slurm.commands import SlurmRefusedError
from haptera.modules.slurm.jobs import Partition, Slurm, SlurmOrder
from haptera.modules.slurm.shapes import SlurmJob
from haptera.queue.job import CPUS_MAX, MEMORY_MB_MAX, Size
from haptera.queue.work import (
    REASON_CHARS_MAX,
    Assignment,
    Holding,
    HoldingPhase,
    WorkAsked,
    WorkTold,
)
from haptera.runtime.clock import now_ns
from haptera.sdk.boundary import Boundary

# How often Slurm is asked while it has something of ours, and how long work is waited for else.
LOOK_EVERY_MS: Final = 1_000
WAIT_MS: Final = 5_000
AWAY_S: Final = 2.0
# So many are with Slurm at a time: its own queue holds them, and no more is gained by it.
SUBMITTED_MAX: Final = 2_000
# How much of a job's owner is in Slurm's hands: all that it may ever have.
PLENTY: Final = Size(CPUS_MAX, MEMORY_MB_MAX)
HELD_BY_USER: Final = "JobHeldUser"
WAITING: Final = "PENDING"
# Over, with an exit status; all states that are neither here nor lost are under way.
ENDED_STATES: Final = frozenset(
    ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE")
)
# Words of refusals that may be none a moment later (slurm_errno); any other is for good.
PASSING: Final = ("temporar", "contact slurm controller", "timed out", "Zero Bytes", "in progress")
LOST_STATES: Final = frozenset(("NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "REVOKED"))

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SlurmName:
    """What a job of ours is called in Slurm."""

    cluster: str
    job: int
    token: int

    def __str__(self) -> str:
        return f"haptera-{self.cluster}-{self.job}-{self.token}"

    @classmethod
    def parse(cls, text: str) -> "SlurmName | None":
        """The name, if it is one.

        >>> SlurmName.parse("haptera-3f2a-17-102")
        SlurmName(cluster='3f2a', job=17, token=102)
        """
        found = _NAME.fullmatch(text)
        return None if found is None else cls(found[1], int(found[2]), int(found[3]))


_NAME: Final = re.compile(r"haptera-([0-9a-f]{1,32})-([0-9]{1,18})-([0-9]{1,18})")


class SlurmBackend:
    """What holds the jobs of one backend, `name`; `cluster` is this cluster's tag in job names."""

    def __init__(self, name: str, cluster: str, slurm: Slurm, jobs: ParentQueue) -> None:
        self._name = name
        self._cluster = cluster
        self._slurm = slurm
        self._jobs = jobs
        self._boot = f"{os.getpid()}-{now_ns()}"
        self._number = 0
        self._there: dict[int, SlurmJob] = {}
        # Noted as ended: Slurm goes on telling of them for a while.
        self._over: set[int] = set()
        self._stopping: set[int] = set()
        self._faults: dict[int, Holding] = {}

    @property
    def holder(self) -> str:
        return f"backend:{self._name}"

    async def run(self) -> None:
        """Take work and have it run, until cancelled; what Slurm has goes on."""
        held = self._held_before()
        while True:
            with Boundary(f"backend {self._name}") as looked:
                self._see(await self._slurm.jobs())
            if looked.error is not None:
                # What it has may well run: it stays ours.
                await self._ask(held, takes=False, wait_ms=0)
                await asyncio.sleep(AWAY_S)
                continue
            held = self._held()
            unsettled = any(one.phase is not HoldingPhase.RUNNING for one in held.values())
            wait_ms = 0 if unsettled or self._on_hold() else LOOK_EVERY_MS if held else WAIT_MS
            told = await self._ask(held, takes=len(held) < SUBMITTED_MAX, wait_ms=wait_ms)
            await self._take(held, told)

    def _held_before(self) -> dict[int, Holding]:
        """What the queue says that Slurm has, from before this process."""
        holder = self._jobs.queue.holders.get(self.holder)
        held = {} if holder is None else holder.held
        return {token: Holding(job, token, HoldingPhase.LOCKED) for token, job in held.items()}

    def _see(self, jobs: Iterable[SlurmJob]) -> None:
        """Which of Slurm's jobs are ours, by token; the latest of one name."""
        self._there = {}
        for job in sorted(jobs, key=lambda one: one.job_id):
            name = SlurmName.parse(job.name)
            if name is not None and name.cluster == self._cluster:
                self._there[name.token] = job
        self._over &= self._there.keys()
        self._stopping &= self._there.keys()

    def _held(self) -> dict[int, Holding]:
        held = dict(self._faults)
        for token, job in self._there.items():
            # One that cannot be read is reported once it can.
            with Boundary(f"backend {self._name}, {job.name}"):
                name = SlurmName.parse(job.name)
                assert name is not None
                if token not in self._over:
                    held[token] = holding_of(name, job, stopping=token in self._stopping)
        return held

    def _on_hold(self) -> list[int]:
        """Tokens of jobs that may begin as soon as the queue says so."""
        return [
            token
            for token, job in self._there.items()
            if is_on_hold(job) and token not in self._over | self._stopping
        ]

    async def _ask(self, held: Mapping[int, Holding], *, takes: bool, wait_ms: int) -> WorkTold:
        self._number += 1
        asked = WorkAsked(self._boot, self._number, tuple(held.values()), takes, wait_ms)
        try:
            return await self._jobs.ask(self.holder, PLENTY, asked, self._name)
        except HapteraError as error:
            _log.warning("backend %s: %s", self._name, error)
            await asyncio.sleep(AWAY_S)
            return WorkTold()

    async def _take(self, held: Mapping[int, Holding], told: WorkTold) -> None:
        """Follow the queue's answer; what fails is asked again, for nothing here remembers it."""
        for token in told.noted:
            if held[token].phase not in (HoldingPhase.RUNNING, HoldingPhase.STOPPING):
                self._faults.pop(token, None)
                self._over.add(token)
        with Boundary(f"backend {self._name}") as taken:
            for order in told.stop:
                await self._stop(order.token, order.reason)
            for token in set(told.noted).intersection(self._on_hold()):
                await self._slurm.release(self._there[token].job_id)
            if told.work:
                partitions = await self._slurm.partitions()
                for work in told.work:
                    await self._submit(work, partitions)
        if taken.error is not None:
            await asyncio.sleep(AWAY_S)

    async def _stop(self, token: int, reason: str) -> None:
        job = self._there.get(token)
        if job is not None:
            _log.info("backend %s: cancels %s (%d): %s", self._name, job.name, job.job_id, reason)
            await self._slurm.cancel(job.job_id)
            self._stopping.add(token)

    async def _submit(self, work: Assignment, partitions: Iterable[Partition]) -> None:
        """Submit it; what no later try would change is its end, and that of no other."""
        # That Slurm does not answer is nobody's fault here.
        with Boundary(f"job {work.job}", (HapteraError,)) as job:
            await self._hand_over(work, partitions)
        if job.fault is not None:
            self._fail(work, job.fault)

    async def _hand_over(self, work: Assignment, partitions: Iterable[Partition]) -> None:
        """Submit it, if it is not there; one that Slurm refuses is over, with its words."""
        if work.token in self._there:
            return
        if work.spec.user is not None:
            self._fail(work, "Slurm runs all jobs as the user of the backend")
            return
        size = work.spec.size
        partition = fitting(partitions, size)
        if partition is None:
            self._fail(work, f"no partition of Slurm has nodes with {size}")
            return
        name = SlurmName(self._cluster, work.job, work.token)
        order = SlurmOrder(
            str(name),
            work.spec.command,
            max(1, size.cpus),
            size.memory_mb,
            work.spec.time_limit_s,
            _environment(work),
        )
        try:
            number = await self._slurm.submit(order, partition.name)
        except SlurmRefusedError as error:
            # Said no, or did not answer: where it answers now, it has said no.
            self._see(await self._slurm.jobs())
            if work.token not in self._there:
                passes = any(words in str(error) for words in PASSING)
                phase = HoldingPhase.RETURNED if passes else HoldingPhase.REFUSED
                self._fail(work, str(error), phase)
        else:
            _log.info("backend %s: job %d is %d in Slurm", self._name, work.job, number)

    def _fail(
        self, work: Assignment, reason: str, phase: HoldingPhase = HoldingPhase.REFUSED
    ) -> None:
        reason = reason[:REASON_CHARS_MAX]
        self._faults[work.token] = Holding(work.job, work.token, phase, None, reason)


def is_on_hold(job: SlurmJob) -> bool:
    """Whether nothing of it can run before it is released."""
    return job.job_state == WAITING and job.state_reason == HELD_BY_USER


def holding_of(name: SlurmName, job: SlurmJob, *, stopping: bool) -> Holding:
    """What one of Slurm's jobs is to the queue."""
    if job.job_state in LOST_STATES:
        reason = f"Slurm: {job.job_state} on {job.nodes}"
        return Holding(name.job, name.token, HoldingPhase.RETURNED, None, reason)
    if job.job_state in ENDED_STATES:
        status = _status(job.exit_code)
        well = job.job_state in ("COMPLETED", "FAILED")
        why = None if well else f"Slurm: {job.job_state}, {job.state_reason}"
        # What was cancelled before it began has the exit code of a success.
        status = None if status == 0 and job.job_state != "COMPLETED" else status
        return Holding(name.job, name.token, HoldingPhase.ENDED, status, why)
    phase = HoldingPhase.STOPPING if stopping else HoldingPhase.RUNNING
    return Holding(name.job, name.token, phase)


def fitting(partitions: Iterable[Partition], size: Size) -> Partition | None:
    """The partition with the smallest nodes that have room: where sizes have one each, its own."""
    able = [one for one in partitions if Size(one.cpus, one.memory_mb).fits(size)]
    return min(able, key=lambda one: (one.cpus, one.memory_mb, one.name), default=None)


def _status(wait_status: int | None) -> int | None:
    """An exit status; below 0, a signal's."""
    return None if wait_status is None else os.waitstatus_to_exitcode(wait_status & 0xFFFF)


def _environment(work: Assignment) -> Mapping[str, str]:
    known = {
        "HAPTERA_JOB": work.job,
        "HAPTERA_JOB_TOKEN": work.token,
        "HAPTERA_JOB_ARRAY": work.array,
        "HAPTERA_JOB_INDEX": work.index,
    }
    return {name: str(value) for name, value in known.items() if value is not None}
