"""A cloud and a queue on paper, second by second, to which a pool's decisions are done."""

import random
from dataclasses import dataclass, field, replace

from haptera.controllers.pool import (
    SECOND_NS,
    Create,
    Destroy,
    Drain,
    Pool,
    PoolDecision,
    Reopen,
    Slot,
    SlotPhase,
    decide,
    jobs_in,
    room_of,
)
from haptera.kinds.instance import Refusal, RefusalCause, RefusalWords
from haptera.queue.demand import Wanted
from haptera.queue.job import Size


@dataclass
class PaperJob:
    """A job of so many seconds; `left_s` counts while it runs."""

    number: int
    size: Size
    left_s: int
    priority: int = 0
    began: list[str] = field(default_factory=list)


@dataclass
class Machine:
    """What the cloud has under a slot's name."""

    size: str
    up_at: int
    since: int
    phase: SlotPhase = SlotPhase.CREATING
    jobs: list[PaperJob] = field(default_factory=list)
    gone_at: int | None = None


@dataclass
class Cloud:
    """`boot_s` from its creation to when a machine takes jobs; the rest are faults.

    `answers` are words of refusal for a size, or for `*`; `hangs` sizes whose machines never come
    up; `destroy_fails` of each hundred destructions have no effect; `fails` of each hundred
    creations.
    """

    pool: Pool
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    boot_s: int = 3
    quota: int | None = None
    answers: dict[str, RefusalWords] = field(default_factory=dict)
    hangs: set[str] = field(default_factory=set)
    fails: int = 0
    destroy_fails: int = 0
    now_s: int = 0
    submitted: int = 0
    machines: dict[str, Machine] = field(default_factory=dict)
    queue: list[PaperJob] = field(default_factory=list)
    done: list[PaperJob] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    asked: list[tuple[int, str, str]] = field(default_factory=list)
    destroyed: list[tuple[int, str]] = field(default_factory=list)
    living_max: int = 0
    killed: list[PaperJob] = field(default_factory=list)

    @property
    def now(self) -> int:
        return self.now_s * SECOND_NS

    def submit(self, count: int, cpus: int, seconds: int, memory_mb: int = 100, priority=0) -> None:
        for _ in range(count):
            self.queue.append(PaperJob(self.submitted, Size(cpus, memory_mb), seconds, priority))
            self.submitted += 1
        self.queue.sort(key=lambda job: (-job.priority, job.number))

    def slots(self) -> list[Slot]:
        names = [f"p-{number}" for number in range(1, self.pool.most + 1)]
        return [self._slot(name) for name in names]

    def _slot(self, name: str) -> Slot:
        machine = self.machines.get(name)
        if machine is None:
            return Slot(name, SlotPhase.ABSENT)
        return Slot(name, machine.phase, machine.size, machine.since * SECOND_NS)

    def wanted(self) -> list[Wanted]:
        """Those that nobody has room for, lane by lane, in the order of the queue."""
        lanes: dict[Size, int] = {}
        for job in self.queue:
            lanes[job.size] = lanes.get(job.size, 0) + 1
        return [Wanted(size, count, 0) for size, count in lanes.items()]

    def step(self) -> PoolDecision:
        """A second passes; then the pool decides, and it is done."""
        self.now_s += 1
        for name, machine in list(self.machines.items()):
            self._live(name, machine)
        decision = decide(self.pool, self.slots(), self.wanted(), self.refusals, self.now)
        for action in decision.actions:
            match action:
                case Create(slot, size):
                    self._create(slot, size)
                case Drain(slot, _):
                    self._turn(self.machines[slot], SlotPhase.DRAINING)
                case Reopen(slot):
                    machine = self.machines[slot]
                    self._turn(machine, SlotPhase.BUSY if machine.jobs else SlotPhase.IDLE)
                case Destroy(slot, _):
                    self._destroy(slot)
        self.living_max = max(self.living_max, len(self.machines))
        return decision

    def run(self, until_s: int) -> None:
        while self.now_s < until_s:
            self.step()

    def run_dry(self, within_s: int = 3_000) -> None:
        """Until there is neither a job nor an instance more than there must be."""
        end = self.now_s + within_s
        while self.now_s < end:
            self.step()
            busy = any(one.jobs for one in self.machines.values())
            if not self.queue and not busy and len(self.machines) <= self.pool.least:
                return
        left = (len(self.queue), {name: one.phase for name, one in self.machines.items()})
        raise AssertionError(f"not dry after {within_s} s: {left}")

    def _create(self, name: str, size: str) -> None:
        assert name not in self.machines, f"{name} is there"
        self.asked.append((self.now_s, name, size))
        words = self.answers.get(size) or self.answers.get("*")
        if self.quota is not None and len(self.machines) >= self.quota:
            words = RefusalWords(RefusalCause.QUOTA, f"{self.quota} at most")
        if words is None and self.rng.randrange(100) < self.fails:
            words = RefusalWords(RefusalCause.OTHER, "internal error")
        if words is not None:
            family = next(one.family for one in self.pool.sizes if one.name == size)
            self.refusals.append(words.refusal(size, family, len(self.machines), self.now))
            return
        self.machines[name] = Machine(size, self.now_s + self.boot_s, self.now_s)

    def _destroy(self, name: str) -> None:
        machine = self.machines[name]
        self.killed += machine.jobs
        self.destroyed.append((self.now_s, name))
        if self.rng.randrange(100) >= self.destroy_fails:
            machine.gone_at = self.now_s + 1
            self._turn(machine, SlotPhase.DESTROYING)

    def _live(self, name: str, machine: Machine) -> None:
        if machine.gone_at is not None:
            if machine.gone_at <= self.now_s:
                del self.machines[name]
            return
        if machine.phase is SlotPhase.CREATING:
            self._turn(machine, SlotPhase.BOOTING, keep=True)
        if machine.phase is SlotPhase.BOOTING:
            if machine.size in self.hangs or self.now_s < machine.up_at:
                return
            self._turn(machine, SlotPhase.IDLE)
        for job in machine.jobs:
            job.left_s -= 1
        self.done += [job for job in machine.jobs if job.left_s <= 0]
        machine.jobs = [job for job in machine.jobs if job.left_s > 0]
        if machine.phase in (SlotPhase.IDLE, SlotPhase.BUSY):
            self._take(name, machine)
        self._settle(machine)

    def _take(self, name: str, machine: Machine) -> None:
        room = room_of(next(one for one in self.pool.sizes if one.name == machine.size))
        for job in machine.jobs:
            room = room - job.size
        for job in list(self.queue):
            if jobs_in(room, job.size):
                room = room - job.size
                job.began.append(name)
                machine.jobs.append(job)
                self.queue.remove(job)

    def _settle(self, machine: Machine) -> None:
        match machine.phase:
            case SlotPhase.IDLE if machine.jobs:
                self._turn(machine, SlotPhase.BUSY)
            case SlotPhase.BUSY if not machine.jobs:
                self._turn(machine, SlotPhase.IDLE)
            case SlotPhase.DRAINING if not machine.jobs:
                self._turn(machine, SlotPhase.DRAINED)

    def _turn(self, machine: Machine, phase: SlotPhase, keep: bool = False) -> None:
        machine.phase = phase
        if not keep:
            machine.since = self.now_s


def crashed(cloud: Cloud) -> Cloud:
    """The same cloud and queue, with a pool that remembers nothing."""
    return replace(cloud, refusals=[])
