"""Many runs of one rehearsal, as one answer."""

from collections import Counter
from collections.abc import Collection, Sequence
from math import ceil

import msgspec

from haptera.rehearsal.invariants import BrokenInvariant
from haptera.rehearsal.rehearse import TOLD_MAX, RehearsalRun


class Spread(msgspec.Struct, frozen=True):
    """A measure over all runs: its least, median, ninetieth percentile and greatest value."""

    least: float
    median: float
    p90: float
    most: float


class WaitedFor(msgspec.Struct, frozen=True):
    """A reason for waiting, with its entity-seconds in the median run."""

    why: str
    entity_s: float


class Left(msgspec.Struct, frozen=True):
    """An entity that was not as desired at the end, why, and in how many runs."""

    entity: str
    why: str
    runs: int


class RehearsalSummary(msgspec.Struct, frozen=True):
    """The result of runs with consecutive seeds; times in seconds since the change.

    `settled_s` counts only runs that came to their end within the horizon; there were
    `settled`. `waits` are the longest first: the first is the bottleneck. `restless` was not as
    desired before, and `unmeasured` parts took what their declaration suggests. `missing` are
    modules that are not installed here: what they serve stood still. `assumed` is true of a copy of
    which only desired state was known, as of a backup.
    """

    revision: int
    first_seed: int
    runs: int
    settled: int
    horizon_s: float
    settled_s: Spread | None
    steps: Spread
    failed: Spread
    disrupted_nodes: Spread
    disrupted_at_once: Spread
    refused_by_jobs: Spread
    waits: list[WaitedFor]
    left: list[Left]
    breaches: list[BrokenInvariant]
    restless: dict[str, str]
    unmeasured: list[str]
    missing: list[str]
    assumed: bool = False

    @property
    def is_good(self) -> bool:
        """True if each run came to its end, and no invariant was broken."""
        return self.settled == self.runs and not self.breaches


def summed_up(
    runs: Sequence[RehearsalRun],
    revision: int,
    horizon_s: float,
    measured: Collection[str],
    missing: Sequence[str],
    *,
    assumed: bool = False,
) -> RehearsalSummary:
    """The answer of some runs; at least one."""
    settled = [one.settled_s for one in runs if one.settled_s is not None]
    reasons = Counter[str]()
    left = Counter[tuple[str, str]]()
    for run in runs:
        reasons.update(run.waited_s)
        left.update(run.stuck.items())
    breaches = {one.invariant: one for run in reversed(runs) for one in run.breaches}
    parts = {one.part for run in runs for one in run.spans}
    return RehearsalSummary(
        revision,
        runs[0].seed,
        len(runs),
        len(settled),
        horizon_s,
        spread(settled) if settled else None,
        spread([len(one.spans) for one in runs]),
        spread([sum(span.failed for span in one.spans) for one in runs]),
        spread([len(one.disrupted) for one in runs]),
        spread([one.disrupted_at_once for one in runs]),
        spread([one.refusals for one in runs]),
        [WaitedFor(why, total / len(runs)) for why, total in reasons.most_common(TOLD_MAX)],
        [Left(name, why, count) for (name, why), count in left.most_common(TOLD_MAX)],
        [*breaches.values()],
        runs[0].restless,
        sorted(parts - set(measured)),
        [*missing],
        assumed,
    )


def spread(values: Sequence[float]) -> Spread:
    """The spread of some values; at least one.

    >>> spread([3, 1, 2, 10])
    Spread(least=1, median=2, p90=10, most=10)
    """
    ordered = sorted(values)
    return Spread(
        ordered[0],
        ordered[ceil(len(ordered) / 2) - 1],
        ordered[ceil(len(ordered) * 0.9) - 1],
        ordered[-1],
    )
