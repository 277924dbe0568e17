"""What the jobs that wait ask for beyond what there is: what a pool would be grown by."""

from collections.abc import Iterable
from dataclasses import replace

import msgspec

from haptera.queue.choice import Room
from haptera.queue.job import Job, Size
from haptera.queue.lanes import Lanes


class Wanted(msgspec.Struct, frozen=True):
    """So many jobs wait that ask for so much, and have no place where anything is free now."""

    size: Size
    count: int
    priority: int


def demand(lanes: Lanes, rooms: Iterable[Room], backend: str | None = None) -> list[Wanted]:
    """The jobs that wait and find no place, the most urgent first; each place is counted once.

    What may overflow to others is its own backend's as long as it waits.
    """
    places = list(rooms)
    counts = lanes.counts()
    wanted: list[Wanted] = []
    for head in sorted(lanes.heads(backend, 0.0), key=_rank):
        left = counts[head.lane]
        for at, room in enumerate(places):
            found = _places(room.free, head.spec.size, left) if room.could_hold(head) else 0
            left -= found
            taken = Size(head.spec.size.cpus * found, head.spec.size.memory_mb * found)
            places[at] = replace(room, free=room.free - taken)
        if left:
            wanted.append(Wanted(head.spec.size, left, head.priority))
    return wanted


def _rank(job: Job) -> tuple[int, int]:
    return job.rank


def _places(free: Size, size: Size, most: int) -> int:
    """How many fit."""
    by_memory = free.memory_mb // size.memory_mb if size.memory_mb else most
    by_cpus = free.cpus // size.cpus if size.cpus else most
    return max(0, min(most, by_cpus, by_memory))
