"""The jobs that hold nodes when a rehearsal begins, and when they end, by measured lengths."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from haptera.queue.job import ENDED, JobState
from haptera.rest.jobs import JobView


@dataclass(frozen=True)
class MeasuredJobs:
    """Lengths of jobs that ended, in order, and for how long the job on a node has run."""

    lengths_s: tuple[float, ...] = ()
    running_s: Mapping[str, float] = field(default_factory=dict)

    def ends(
        self, busy: Iterable[str], choose: Callable[[Sequence[float]], float]
    ) -> Iterator[tuple[str, float]]:
        """After how long each of these nodes is free; unknown ones are left out.

        The length is one of those that were measured and are longer than the job has run.

        >>> measured = MeasuredJobs((60.0, 600.0), {"n1": 100.0})
        >>> [*measured.ends(["n1"], max)]
        [('n1', 500.0)]
        """
        for node in busy:
            age_s = self.running_s.get(node, 0.0)
            longer = self.lengths_s[bisect_right(self.lengths_s, age_s) :]
            if longer:
                yield node, choose(longer) - age_s


def measured_jobs(jobs: Iterable[JobView], now_s: float) -> MeasuredJobs:
    """The measures of a queue's jobs; on a node with several, the one that began last counts."""
    lengths, running = [], dict[str, float]()
    for one in jobs:
        if one.began_s is None:
            continue
        if one.state in ENDED and one.ended_s is not None:
            lengths.append(float(one.ended_s - one.began_s))
        elif one.state is JobState.RUNNING and one.holder is not None:
            age_s = max(0.0, now_s - one.began_s)
            running[one.holder] = min(age_s, running.get(one.holder, age_s))
    return MeasuredJobs(tuple(sorted(lengths)), running)
