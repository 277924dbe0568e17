"""Which jobs changed since when: each change has a number, and of each job the last one counts."""

from collections.abc import Iterable
from itertools import takewhile


class JobNews:
    """The jobs that there are, in the order in which they changed last.

    >>> news = JobNews([1, 2, 3])
    >>> news.changed(2)
    >>> news.forgotten(3)
    >>> news.since(1), news.last
    ([(4, 2)], 4)
    """

    def __init__(self, jobs: Iterable[int]) -> None:
        self._numbers: dict[int, int] = {}
        self.last = 0
        for job in jobs:
            self.changed(job)

    def changed(self, job: int) -> None:
        """It is another than before, or is there at all."""
        self.last += 1
        self._numbers.pop(job, None)  # a dict keeps its order: the last changed is at its end
        self._numbers[job] = self.last

    def forgotten(self, job: int) -> None:
        """It is there no more."""
        self._numbers.pop(job, None)

    def since(self, number: int) -> list[tuple[int, int]]:
        """The jobs that changed after this number, the oldest change first, each with its own."""
        latest = takewhile(lambda one: one[1] > number, reversed(self._numbers.items()))
        return [(at, job) for job, at in latest][::-1]
