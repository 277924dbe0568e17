"""The jobs that wait, in lanes: a priority queue for each size, with lazy deletion.

Removal marks, and what is marked is dropped when it comes to the top, as Python's heapq manual
has it ("Priority Queue Implementation Notes").
"""

import heapq
from collections.abc import Iterable, Iterator

from haptera.queue.job import Job, Lane


class Lanes:
    """Who waits; each lane in the order of priority, then of submission."""

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self._waiting: dict[int, Job] = {}
        self._heaps: dict[Lane, list[tuple[tuple[int, int], int]]] = {}
        self._counts: dict[Lane, int] = {}
        for job in jobs:
            self.add(job)

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, job: int) -> bool:
        return job in self._waiting

    def add(self, job: Job) -> None:
        """Have it wait, with the priority that it has now."""
        self.discard(job.id)
        self._waiting[job.id] = job
        heapq.heappush(self._heaps.setdefault(job.lane, []), (job.rank, job.id))
        self._counts[job.lane] = self._counts.get(job.lane, 0) + 1

    def discard(self, job: int) -> None:
        """It waits no more."""
        waiting = self._waiting.pop(job, None)
        if waiting is None:
            return
        lane = waiting.lane
        self._counts[lane] -= 1
        if not self._counts[lane]:
            del self._counts[lane], self._heaps[lane]

    def head(self, lane: Lane) -> Job | None:
        """The first of a lane."""
        heap = self._heaps.get(lane)
        while heap:
            rank, key = heap[0]
            job = self._waiting.get(key)
            if job is not None and job.rank == rank:
                return job
            heapq.heappop(heap)
        return None

    def heads(self, backend: str | None) -> list[Job]:
        """The first of each lane of a backend, in no order."""
        lanes = [one for one in self._heaps if one.backend == backend]
        return [job for lane in lanes if (job := self.head(lane)) is not None]

    def counts(self) -> dict[Lane, int]:
        """How many wait in each lane."""
        return dict(self._counts)

    def ahead(self, job: Job) -> int:
        """How many of its lane come before a job that waits; looks at all that wait."""
        same = (one for one in self._waiting.values() if one.lane == job.lane)
        return sum(one.rank < job.rank for one in same)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._waiting.values())
