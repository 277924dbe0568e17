"""The jobs that wait, in lanes: a sorted list of ranks for each size and image."""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable

from haptera.queue.job import Job, Lane


class Lanes:
    """The jobs that wait; each lane in the order of priority, then of submission.

    Lanes whose image is among the `lacking` ones have no head: nobody could run it.
    """

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self.lacking: Collection[str] = ()
        self._waiting: dict[int, Job] = {}
        self._ranks: dict[Lane, list[tuple[int, int]]] = {}
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
        insort(self._ranks.setdefault(job.lane, []), job.rank)

    def discard(self, key: int) -> None:
        """It waits no more."""
        job = self._waiting.pop(key, None)
        if job is None:
            return
        ranks = self._ranks[job.lane]
        del ranks[bisect_left(ranks, job.rank)]
        if not ranks:
            del self._ranks[job.lane]

    def all_heads(self) -> list[Job]:
        """The first of each lane, in no order."""
        return [self._waiting[ranks[0][1]] for ranks in self._ranks.values()]

    def heads(self, backend: str | None, now_s: float) -> list[Job]:
        """The first of each lane that a backend may have a job of now, in no order."""
        firsts = (
            (self._waiting[ranks[0][1]], lane.after_s(backend))
            for lane, ranks in self._ranks.items()
            if lane.image not in self.lacking and (lane.backend == backend or lane.overflow)
        )
        return [job for job, after_s in firsts if now_s - job.submitted_s >= after_s]

    def images(self) -> set[str]:
        """The images that those who wait ask for."""
        return {lane.image for lane in self._ranks if lane.image is not None}

    def counts(self) -> dict[Lane, int]:
        """How many wait in each lane."""
        return {lane: len(ranks) for lane, ranks in self._ranks.items()}

    def ahead(self, job: Job) -> int:
        """How many of its lane come before a job that waits."""
        return bisect_left(self._ranks[job.lane], job.rank)
