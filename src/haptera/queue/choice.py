"""Which job a holder gets: the first that fits, unless that could delay one that comes before it.

Backfilling with reservations, as in EASY (Lifka 1995) with one reservation for each of the first
blocked lanes: a job that fits a node, but not now, keeps the place on the node that has room for
it the soonest. There nothing begins that is not sure to be over by then, or to fit beside it.
A job that no node could ever hold keeps no place: it blocks nobody.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from haptera.queue.job import Job, Size

# So many of the first blocked lanes have a place kept.
RESERVATIONS_MAX: Final = 8
# A head of a lane that waits for so long comes before those of all lanes that do not.
AGED_AFTER_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Occupant:
    """What a job takes, and when it is over at the latest, in wall time."""

    size: Size
    ends_s: float = inf


@dataclass(frozen=True, slots=True)
class Room:
    """The capacity of holders that accept jobs; some can run jobs in images."""

    holder: str
    capacity: Size
    free: Size
    occupants: tuple[Occupant, ...] = ()
    runs_images: bool = False

    def could_hold(self, job: Job) -> bool:
        """True if a job has its place there when nobody else is there."""
        return self.capacity.fits(job.spec.size) and self._suits(job)

    def can_hold(self, job: Job) -> bool:
        """True if a job has its place there now."""
        return self.free.fits(job.spec.size) and self._suits(job)

    def _suits(self, job: Job) -> bool:
        return self.runs_images or job.spec.image is None


@dataclass(frozen=True, slots=True)
class Reservation:
    """A place that is kept for a job: where, from when at the latest, and what is left beside it.

    Where it is not known when those who are there end, that is never, and nothing is left.
    """

    job: Job
    holder: str
    from_s: float
    beside: Size


def urgency(job: Job, now_s: float) -> tuple[float, int, int]:
    """Heads of lanes go in this order."""
    aged = now_s - job.submitted_s >= AGED_AFTER_S
    return (job.submitted_s if aged else inf, *job.rank)


def choose(
    heads: Iterable[Job], here: Room, rooms: Callable[[], Collection[Room]], now_s: float
) -> Job | None:
    """The job that a holder is to have, if any; `rooms` are of all who take jobs, itself too."""
    kept: list[Reservation] = []
    every: Collection[Room] | None = None
    for head in sorted(heads, key=lambda job: urgency(job, now_s)):
        if here.can_hold(head):
            if all(_may(head, one, now_s) for one in kept if one.holder == here.holder):
                return head
        elif len(kept) < RESERVATIONS_MAX:
            every = rooms() if every is None else every
            kept.extend(reserve([head], every, taken={one.holder for one in kept}))
    return None


def reserve(
    heads: Sequence[Job], rooms: Collection[Room], taken: Collection[str] = ()
) -> Iterator[Reservation]:
    """The places kept for jobs that fit some node, but none now; in the order of these."""
    held = set(taken)
    for job in heads:
        if any(room.can_hold(job) for room in rooms):
            continue
        able = [one for one in rooms if one.could_hold(job) and one.holder not in held]
        places = [_place(job, room) for room in able]
        if places:
            best = min(places, key=lambda one: (one.from_s, one.holder))
            held.add(best.holder)
            yield best


def _place(job: Job, room: Room) -> Reservation:
    """When a room has enough, as those who are there end one after another."""
    free = room.free
    ends = sorted(room.occupants, key=lambda one: one.ends_s)
    for at, one in enumerate(ends):
        free += one.size
        # Those that end at the same time leave together.
        if at + 1 < len(ends) and ends[at + 1].ends_s == one.ends_s:
            continue
        if free.fits(job.spec.size) and one.ends_s < inf:
            return Reservation(job, room.holder, one.ends_s, free - job.spec.size)
    return Reservation(job, room.holder, inf, Size(0, 0))


def _may(job: Job, kept: Reservation, now_s: float) -> bool:
    """Whether a job can begin where a place is kept for another, and not delay that."""
    limit_s = job.spec.time_limit_s
    over = limit_s is not None and now_s + limit_s <= kept.from_s < inf
    return over or kept.beside.fits(job.spec.size)
