"""The readings of one sensor as a rule may rely on them: in order, finite, of one clock."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import isfinite
from typing import Final, NamedTuple

# The largest lead of a node's clock over ours; it is seldom better.
AHEAD_S_MAX: Final = 120.0
# A reading before the last one by more is a clock that was set back; by less, one that overtook.
OVERTAKEN_S_MAX: Final = 60.0
# After a pause of so many intervals, what was before it does not hold on.
GAP_INTERVALS: Final = 8


class Timed(NamedTuple):
    """One reading: when, in seconds since 1970, and what."""

    at: float
    value: float


def middle(values: Iterable[float]) -> float:
    """The median of some values; of an even number the lower one, which is one of them.

    >>> middle([5.0, 1.0, 3.0, 2.0])
    2.0
    """
    some = sorted(values)
    return some[(len(some) - 1) // 2]


def orderly(points: Iterable[Timed], now: float) -> list[Timed]:
    """These points without what is no number, what is of the future, and what repeats.

    Where the clock was set back, all that was read before is of another clock, and goes.

    >>> orderly([Timed(10, 1.0), Timed(20, float("nan")), Timed(20, 2.0), Timed(20, 3.0)], 30)
    [Timed(at=10, value=1.0), Timed(at=20, value=2.0)]
    """
    found: list[Timed] = []
    for one in points:
        if not (isfinite(one.at) and isfinite(one.value)) or one.at > now + AHEAD_S_MAX:
            continue
        if found and one.at <= found[-1].at:
            if one.at > found[-1].at - OVERTAKEN_S_MAX:
                continue
            found.clear()
        found.append(one)
    return found


def interval_s(points: Sequence[Timed]) -> float:
    """The median interval between readings, in seconds; 0 where there are fewer than two."""
    if len(points) < 2:
        return 0.0
    return middle(two.at - one.at for one, two in pairwise(points))


def since_gap(points: Sequence[Timed], longest_s: float) -> Sequence[Timed]:
    """The last of these points, between which no pause is longer.

    >>> [one.at for one in since_gap([Timed(at, 0.0) for at in (0, 10, 20, 200, 210)], 60)]
    [200, 210]
    """
    for at in range(len(points) - 1, 0, -1):
        if points[at].at - points[at - 1].at > longest_s:
            return points[at:]
    return points
