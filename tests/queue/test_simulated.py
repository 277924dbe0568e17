"""A queue and nodes in one simulated world, by seed: answers are lost, both sides die, time passes.

The oracle knows nothing of the queue: it sees which process ran what when, by token.
"""

import random
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from haptera.queue.asking import ask
from haptera.queue.entry import Moment, QueueChanges, StoredQueue, Submission
from haptera.queue.job import ENDED, Job, JobSpec, JobState, Overflow, RetryClass, Size
from haptera.queue.queue import LEASE_MS, LOCKS_MAX, MS, JobQueue
from haptera.queue.work import Assignment, Holding, HoldingPhase, WorkAsked, WorkTold

STEP_MS = 500
# As the agent keeps it: a job is dead so long before its lease is over.
MARGIN_MS = 2_000
ROUNDS = 250
OVERFLOW_S = 10
SIZES = [Size(1, 100), Size(2, 200), Size(4, 400)]


@dataclass
class Disk:
    """What the parent has written: all that another process of it knows."""

    jobs: dict[int, Job] = field(default_factory=dict)
    job_last: int = 0
    token_last: int = 0

    def write(self, changes: QueueChanges) -> None:
        for key, job in changes.jobs.items():
            if job is None:
                self.jobs.pop(key)
            else:
                self.jobs[key] = job
        self.job_last, self.token_last = changes.job_last, changes.token_last

    def load(self) -> StoredQueue:
        return StoredQueue(tuple(self.jobs.values()), self.job_last, self.token_last)


@dataclass
class Held:
    """A job on a node: `until_ms` its keeper lets it live; `left_ms` it goes on, once it began."""

    work: Assignment
    phase: HoldingPhase = HoldingPhase.RUNNING
    until_ms: int = 0
    left_ms: int | None = None
    status: int | None = None


@dataclass
class Node:
    name: str
    size: Size
    backend: str | None = None
    held: dict[int, Held] = field(default_factory=dict)
    down_until_ms: int = 0


@dataclass(frozen=True)
class Effect:
    """A process that ran, from when to when."""

    job: int
    token: int
    from_ms: int
    to_ms: int


class Simulation:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.ms, self.asked = 0, 0
        self.disk = Disk()
        self.queue = JobQueue(self.disk.load(), self.now)
        self.nodes = [Node(f"n{at}", SIZES[at % 3]) for at in range(6)]
        self.nodes.append(Node("backend:slurm", Size(64, 64_000), "slurm"))
        self.begun: dict[int, tuple[int, int]] = {}
        self.effects: list[Effect] = []
        self.failing = True

    @property
    def now(self) -> Moment:
        return Moment(self.ms * MS, self.ms / 1_000)

    def chance(self, percent: int) -> bool:
        return self.failing and self.rng.randrange(100) < percent

    def submit(self) -> None:
        limit = self.rng.choice([None, 5, 60])
        retry = self.rng.choice(list(RetryClass))
        others = self.rng.choice([(), (Overflow("slurm", OVERFLOW_S),)])
        spec = JobSpec(("true",), self.rng.choice(SIZES), limit, retry, overflow=others)
        priority = self.rng.randrange(5)
        self.queue.submit(
            Submission(owner="eve", name="it", spec=spec, priority=priority), self.now
        )
        self.disk.write(self.queue.changes())

    def step(self) -> None:
        self.ms += STEP_MS
        for node in self.nodes:
            self._run(node)
        self.queue.expire(self.now)
        if self.chance(5):
            self.queue = JobQueue(self.disk.load(), self.now)  # what was not written is lost
        self.disk.write(self.queue.changes())
        for node in self.rng.sample(self.nodes, len(self.nodes)):
            if self.ms >= node.down_until_ms:
                self._ask(node)
            if self.chance(1):
                node.down_until_ms = self.ms + self.rng.randrange(2 * LEASE_MS)
            if self.chance(1):
                self._lose(node)
        self.queue.check()

    def _ask(self, node: Node) -> None:
        self.asked += 1
        held = tuple(
            Holding(one.work.job, one.work.token, one.phase, one.status)
            for one in node.held.values()
        )
        if self.chance(10):
            return  # it does not arrive
        asked = WorkAsked("b", self.asked, held)
        told = ask(self.queue, node.name, node.size, asked, self.now, node.backend)
        if self.chance(5):
            self.queue = JobQueue(self.disk.load(), self.now)
            return
        self.disk.write(self.queue.changes())
        if not self.chance(10):
            self._take(node, held, told)

    def _take(self, node: Node, held: tuple[Holding, ...], told: WorkTold) -> None:
        for asked in held:
            one = node.held[asked.token]
            if one.phase is HoldingPhase.ENDED and asked.token in told.noted:
                del node.held[asked.token]
            elif one.phase is HoldingPhase.RUNNING:
                one.until_ms = self.ms + told.lease_ms - MARGIN_MS
                if asked.token in told.noted and one.left_ms is None:
                    one.left_ms = self.rng.randrange(20_000)
                    self._begin(one)
        for order in told.stop:
            stopped = node.held.get(order.token)
            if stopped is not None and stopped.phase is HoldingPhase.RUNNING:
                self._end(stopped, None)
        for work in told.work:
            node.held.setdefault(work.token, Held(work))

    def _begin(self, one: Held) -> None:
        assert one.work.token not in self.begun, "begun twice under one token"
        self.begun[one.work.token] = (one.work.job, self.ms)

    def _end(self, one: Held, status: int | None) -> None:
        if one.left_ms is not None:
            job, began = self.begun[one.work.token]
            self.effects.append(Effect(job, one.work.token, began, self.ms))
        one.phase, one.status = HoldingPhase.ENDED, status

    def _run(self, node: Node) -> None:
        """Time passes for its jobs; keepers need neither the agent nor the network."""
        for one in node.held.values():
            if one.phase is not HoldingPhase.RUNNING or one.left_ms is None:
                continue
            one.left_ms -= STEP_MS
            if one.left_ms <= 0:
                self._end(one, self.rng.choice([0, 0, 1]))
            elif self.ms >= one.until_ms:
                self._end(one, -9)

    def _lose(self, node: Node) -> None:
        """Its power is cut: nothing of its jobs is known any more."""
        for one in node.held.values():
            if one.phase is HoldingPhase.RUNNING and one.left_ms is not None:
                self._end(one, None)
        node.held.clear()


@pytest.mark.parametrize("seed", range(100))
def test_no_job_is_lost_or_runs_twice_at_a_time_whatever_is_lost(seed: int) -> None:
    world = Simulation(seed)
    for _ in range(40):
        world.submit()
    for _ in range(ROUNDS):
        world.step()
    world.failing = False
    for node in world.nodes:
        node.down_until_ms = 0
    for _ in range(ROUNDS):
        world.step()
    jobs = world.queue.jobs.values()
    assert [job.id for job in jobs if job.state not in ENDED] == []
    for job in jobs:
        runs = sorted((one for one in world.effects if one.job == job.id), key=_from)
        overlapping = [one for one, two in pairwise(runs) if two.from_ms < one.to_ms]
        assert overlapping == []
        assert len(runs) <= (1 if job.spec.retry is RetryClass.NEVER else LOCKS_MAX)
        if job.state in (JobState.COMPLETE, JobState.FAILED):
            assert runs


def _from(effect: Effect) -> int:
    return effect.from_ms


def test_most_worlds_are_interesting() -> None:
    worlds = [Simulation(seed) for seed in range(5)]
    for world in worlds:
        for _ in range(40):
            world.submit()
        for _ in range(ROUNDS):
            world.step()
    ran_again = [
        len({one.token for one in world.effects if one.job == job.id}) > 1
        for world in worlds
        for job in world.queue.jobs.values()
    ]
    cancelled = [
        job
        for world in worlds
        for job in world.queue.jobs.values()
        if job.state is JobState.CANCELLED
    ]
    assert sum(ran_again) > 5
    assert len(cancelled) > 5
