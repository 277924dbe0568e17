"""Decides which instances of a pool to make, drain, open again and destroy: a pure function.

It is asked again after each change with all that is known, so that it keeps nothing itself. A
pool's instances are numbered slots that exist whether filled or not: what a provider lists is
always one of them, and nothing that was made can be forgotten.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from haptera.kinds.instance import Refusal, RefusalCause
from haptera.kinds.pool import InstanceSize
from haptera.queue.demand import Wanted
from haptera.queue.job import Size

SECOND_NS: Final = 1_000_000_000
# How long what was refused is not asked for again, where the provider does not say.
HOLD_NS: Final = {
    RefusalCause.QUOTA: 60 * SECOND_NS,
    RefusalCause.CAPACITY: 60 * SECOND_NS,
    RefusalCause.RATE: 5 * SECOND_NS,
    RefusalCause.OTHER: 10 * SECOND_NS,
}
# So many instances of a pool are being made at a time: what refuses one would refuse them all.
CREATES_AT_ONCE: Final = 4
_AGAIN: Final = re.compile(r", again in [0-9.]+ s")


class SlotPhase(StrEnum):
    """Where a slot stands. Only an `absent` one can be filled, only a `drained` one be emptied."""

    ABSENT = "absent"
    CREATING = "creating"
    BOOTING = "booting"
    IDLE = "idle"
    BUSY = "busy"
    DRAINING = "draining"
    DRAINED = "drained"
    # Kept by a person, on hold or drained: not this pool's to open, drain or destroy.
    HELD = "held"
    FAILED = "failed"
    DESTROYING = "destroying"


@dataclass(frozen=True, slots=True)
class Slot:
    """One instance that is or may be; `since_ns` is when its phase began.

    `size` is what it has, or alone can have; None for an absent one that may be made in any.
    """

    name: str
    phase: SlotPhase
    size: str | None = None
    since_ns: int = 0


@dataclass(frozen=True, slots=True)
class Pool:
    """What a pool may buy, and how long it waits.

    A job is given an instance of the cheapest size that it fits, or, where that cannot be had, of
    another that costs at most `price_factor` times as much.
    """

    sizes: tuple[InstanceSize, ...]
    least: int
    most: int
    price_factor: float
    idle_ns: int
    boot_ns: int


@dataclass(frozen=True, slots=True)
class Create:
    slot: str
    size: str


@dataclass(frozen=True, slots=True)
class Drain:
    slot: str
    why: str


@dataclass(frozen=True, slots=True)
class Reopen:
    """Give it work again: cancel its drain."""

    slot: str


@dataclass(frozen=True, slots=True)
class Destroy:
    slot: str
    why: str


PoolAction = Create | Drain | Reopen | Destroy


@dataclass(frozen=True, slots=True)
class Unmet:
    """So many jobs of a size that no instance is made for, and why not."""

    size: Size
    count: int
    why: str


@dataclass(frozen=True, slots=True)
class PoolDecision:
    """What to do now, and for whom nothing is done; `until_ns` is when to ask again by itself."""

    actions: tuple[PoolAction, ...] = ()
    unmet: tuple[Unmet, ...] = ()
    until_ns: int | None = None


def decide(
    pool: Pool,
    slots: Iterable[Slot],
    wanted: Sequence[Wanted],
    refusals: Iterable[Refusal],
    now: int,
) -> PoolDecision:
    """What to do about a pool; `wanted` are jobs that nobody has room for, the head first."""
    purchase = _Purchase(pool, sorted(slots, key=_by_number), tuple(refusals), now)
    for one in wanted:
        purchase.meet(one)
    purchase.keep_least()
    if wanted:
        purchase.make_way(wanted[0])
    purchase.clear_away()
    return purchase.decision()


def holds(refusals: Iterable[Refusal], size: InstanceSize, living: int, now: int) -> Refusal | None:
    """What stands against making one of this size now: of several the one that lasts longest.

    A quota that was met with instances there is tried again as soon as there are fewer.
    """
    standing = [
        one
        for one in refusals
        if _concerns(one, size)
        and held_until(one) > now
        and not (one.cause is RefusalCause.QUOTA and living < one.living)
    ]
    return max(standing, key=held_until, default=None)


def standing(pool: Pool, slots: Iterable[Slot], unmet: Iterable[Unmet]) -> str:
    """Where a pool stands, in words; without times, which would be others each second."""
    there = Counter(one.phase for one in slots)
    counts = [f"{there[one]} {one}" for one in SlotPhase if there[one] and one != SlotPhase.ABSENT]
    said = [f"of {pool.most} instances {', '.join(counts) or 'none is there'}"]
    said += [f"none for jobs of {one.size}: {_AGAIN.sub('', one.why)}" for one in unmet]
    return "; ".join(said)


def held_until(refusal: Refusal) -> int:
    """When what was refused may be asked for again."""
    if refusal.until_ns is not None:
        return refusal.until_ns
    return refusal.at_ns + HOLD_NS[refusal.cause]


def _concerns(refusal: Refusal, size: InstanceSize) -> bool:
    """A quota and a rate limit are the whole account's; capacity may be of one size or family."""
    if refusal.size is not None:
        return refusal.size == size.name
    return refusal.family is None or refusal.family == size.family


def _by_number(slot: Slot) -> tuple[int, str]:
    """`burst-10` comes after `burst-9`."""
    return len(slot.name), slot.name


def room_of(size: InstanceSize) -> Size:
    """What jobs have of an instance of this size."""
    return Size(size.cpus, size.memory_mb)


def jobs_in(room: Size, job: Size) -> int:
    """How many jobs of this size a room takes."""
    return min(room.cpus // max(1, job.cpus), room.memory_mb // max(1, job.memory_mb))


class _Purchase:
    """One decision in the making."""

    def __init__(
        self, pool: Pool, slots: Sequence[Slot], refusals: Sequence[Refusal], now: int
    ) -> None:
        self._pool = pool
        self._sizes = {one.name: one for one in pool.sizes}
        self._slots = slots
        self._refusals = refusals
        self._now = now
        self._living = sum(one.phase is not SlotPhase.ABSENT for one in slots)
        creating = sum(one.phase is SlotPhase.CREATING for one in slots)
        self._creates_left = max(0, CREATES_AT_ONCE - creating)
        self._actions: list[PoolAction] = []
        self._unmet: list[Unmet] = []
        # Sizes of jobs that only the number of instances stands against.
        self._crowded: set[Size] = set()
        # Room that is on its way; of what is there already, the queue made use.
        self._coming = [
            room_of(self._sizes[one.size])
            for one in slots
            if one.phase in (SlotPhase.CREATING, SlotPhase.BOOTING) and one.size in self._sizes
        ]

    def meet(self, wanted: Wanted) -> None:
        """Have room for these jobs: in what comes, in what can be opened again, in what is made."""
        missing = self._placed(wanted.size, wanted.count)
        while missing > 0:
            room = self._opened(wanted.size) or self._made(wanted.size, missing)
            if room is None:
                return
            self._coming.append(room)
            missing = self._placed(wanted.size, missing)

    def keep_least(self) -> None:
        """As many as there always should be, of the cheapest size that can be had."""
        going = (SlotPhase.ABSENT, SlotPhase.DESTROYING, SlotPhase.FAILED)
        made = sum(isinstance(one, Create) for one in self._actions)
        staying = sum(one.phase not in going for one in self._slots) + made
        for _ in range(self._pool.least - staying):
            smallest = min(self._pool.sizes, key=_price)
            if self._made(room_of(smallest), 1) is None:
                return

    def make_way(self, head: Wanted) -> None:
        """Where the pool is full, let instances end that are of no use to the head.

        They are drained, never stopped: of those that are idle as many as the head needs, of those
        that are busy one after the other.
        """
        leaving = (SlotPhase.DRAINING, SlotPhase.DRAINED, SlotPhase.DESTROYING)
        missing = sum(one.count for one in self._unmet if one.size == head.size)
        missing -= sum(one.phase in leaving for one in self._slots)
        if head.size not in self._crowded or missing <= 0:
            return
        useless = [
            one
            for one in self._slots
            if one.size not in self._sizes or not room_of(self._sizes[one.size]).fits(head.size)
        ]
        idle = [one for one in useless if one.phase is SlotPhase.IDLE]
        busy = [one for one in useless if one.phase is SlotPhase.BUSY]
        none_leaves = not any(one.phase in leaving for one in self._slots)
        chosen = idle[:missing] or (busy[:1] if none_leaves else [])
        why = f"the pool is full, and a job of {head.size} waits"
        self._actions.extend(Drain(one.name, why) for one in chosen)

    def clear_away(self) -> None:
        """What has been idle for too long, never came up, failed, or is empty at last."""
        opened = {one.slot for one in self._actions if isinstance(one, Reopen | Drain)}
        staying = sum(
            one.phase not in (SlotPhase.ABSENT, SlotPhase.DESTROYING, SlotPhase.FAILED)
            and one.phase not in (SlotPhase.DRAINING, SlotPhase.DRAINED)
            for one in self._slots
        )
        for one in self._slots:
            if one.name in opened:
                continue
            why = self._end_of(one)
            if why is not None:
                self._actions.append(Destroy(one.name, why))
            elif one.phase is SlotPhase.IDLE and staying > self._pool.least and self._is_over(one):
                staying -= 1
                self._actions.append(Drain(one.name, f"idle for {self._for(one)}"))

    def decision(self) -> PoolDecision:
        return PoolDecision(tuple(self._actions), tuple(self._unmet), self._until())

    def _placed(self, job: Size, count: int) -> int:
        """How many of so many jobs find no room in what comes; the least room is filled first."""
        self._coming.sort()
        for at, room in enumerate(self._coming):
            taken = min(count, jobs_in(room, job))
            self._coming[at] = room - Size(job.cpus * taken, job.memory_mb * taken)
            count -= taken
        return count

    def _opened(self, job: Size) -> Size | None:
        """The room of an instance that was drained, and is needed after all.

        Not where it makes way for something more urgent.
        """
        if self._crowded:
            return None
        opened = {one.slot for one in self._actions if isinstance(one, Reopen)}
        for one in self._slots:
            size = self._sizes.get(one.size or "")
            leaving = (
                one.phase in (SlotPhase.DRAINING, SlotPhase.DRAINED) and one.name not in opened
            )
            if leaving and size is not None and room_of(size).fits(job):
                self._actions.append(Reopen(one.name))
                return room_of(size)
        return None

    def _made(self, job: Size, count: int) -> Size | None:
        """The room of a new instance of the best size that can be had; or say why there is none."""
        fitting = sorted((one for one in self._pool.sizes if room_of(one).fits(job)), key=_price)
        if not fitting:
            there = ", ".join(f"{one.name} ({room_of(one)})" for one in self._pool.sizes)
            self._unmet.append(Unmet(job, count, f"no size of the pool has room: {there}"))
            return None
        if self._living >= self._pool.most:
            self._crowded.add(job)
            why = f"the pool has all of its {self._pool.most} instances"
            self._unmet.append(Unmet(job, count, why))
            return None
        if self._creates_left == 0:
            return None
        dearest = fitting[0].price * self._pool.price_factor
        reasons = []
        for size in fitting:
            if size.price > dearest:
                factor = f"{self._pool.price_factor:g} times {fitting[0].name}"
                reasons.append(f"{size.name} costs more than {factor}")
                continue
            held = holds(self._refusals, size, self._living, self._now)
            slot = self._free_slot(size)
            if held is not None:
                if held.cause is RefusalCause.QUOTA:
                    self._crowded.add(job)
                reasons.append(f"{size.name}: {held}, again in {self._left(held_until(held))}")
            elif slot is None:
                reasons.append(f"{size.name}: there is none left")
            else:
                self._fill(slot, size)
                return room_of(size)
        self._unmet.append(Unmet(job, count, "; ".join(reasons)))
        return None

    def _free_slot(self, size: InstanceSize) -> Slot | None:
        filled = {one.slot for one in self._actions if isinstance(one, Create)}
        for one in self._slots:
            free = one.phase is SlotPhase.ABSENT and one.name not in filled
            if free and one.size in (None, size.name):
                return one
        return None

    def _fill(self, slot: Slot, size: InstanceSize) -> None:
        self._actions.append(Create(slot.name, size.name))
        self._living += 1
        self._creates_left -= 1

    def _end_of(self, slot: Slot) -> str | None:
        """Why this one is to be destroyed now; None for one that is not."""
        match slot.phase:
            case SlotPhase.DRAINED:
                return "drained"
            case SlotPhase.FAILED:
                return "failed"
            case SlotPhase.CREATING | SlotPhase.BOOTING if self._is_over(slot):
                return f"not up after {self._for(slot)}"
            case _:
                return None

    def _is_over(self, slot: Slot) -> bool:
        return self._now >= slot.since_ns + self._allowed_ns(slot)

    def _allowed_ns(self, slot: Slot) -> int:
        return self._pool.idle_ns if slot.phase is SlotPhase.IDLE else self._pool.boot_ns

    def _until(self) -> int | None:
        """The next time at which something is decided because of the time alone."""
        timed = (SlotPhase.IDLE, SlotPhase.CREATING, SlotPhase.BOOTING)
        times = [one.since_ns + self._allowed_ns(one) for one in self._slots if one.phase in timed]
        if self._unmet:
            times += map(held_until, self._refusals)
        return min((one for one in times if one > self._now), default=None)

    def _for(self, slot: Slot) -> str:
        return f"{(self._now - slot.since_ns) // SECOND_NS} s"

    def _left(self, until_ns: int) -> str:
        return f"{(until_ns - self._now) / SECOND_NS:.1f} s"


def _price(size: InstanceSize) -> tuple[float, str]:
    return size.price, size.name
