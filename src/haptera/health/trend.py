"""The trend of readings: a slope that outliers do not bend, and when it meets a limit.

The slope is the median of the slopes between all pairs of points (Theil 1950, Sen 1968); its
interval follows from the variance of Kendall's S (Hollander and Wolfe, *Nonparametric Statistical
Methods*, 9.3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

from haptera.health.readings import Timed, middle, since_gap

# A window is read as the medians of so many parts: 496 pairs, whatever the sensor's interval is.
PARTS: Final = 32
# Fewer say nothing of a trend.
PARTS_MIN: Final = 12
# Of the standard normal distribution, for a confidence of 95 %.
QUANTILE: Final = 1.96
# More of the rise than this between a few neighbouring parts is a step.
STEP_MIN: Final = 0.6
NEIGHBOURS: Final = 4
# A jump of more median deviations from the usual is no noise.
OUTSTANDING: Final = 4
# The medians of the first and of the last readings, so many each, are compared.
GLANCE: Final = 9
# A longer part of the window without readings: what lies before it says nothing of now.
GAP_MAX: Final = 0.25


@dataclass(frozen=True, slots=True)
class TrendLine:
    """A trend: how fast it rises, at least and at most, and where it is now."""

    slope: float
    slowest: float
    fastest: float
    level: float
    at: float

    def meets_at(self, limit: float, slope: float) -> float:
        """The time at which the line meets a limit, with this rising slope."""
        return self.at + max(0.0, limit - self.level) / slope


@dataclass(frozen=True, slots=True)
class Expectation:
    """The time at which a limit is expected to be met: the earliest, the likely and the latest."""

    earliest: float
    likely: float
    latest: float


def expected_at(points: Sequence[Timed], limit: float, window_s: float) -> Expectation | None:
    """The time at which steadily rising readings meet a limit; None where it is not certain.

    All of the window must rise, its later half on its own, and not so much slower than before that
    it ends below the limit: so neither a step nor a warm-up nor noise is a trend.
    """
    parts = _parts(points, window_s)
    if len(parts) < PARTS_MIN or not may_rise(parts) or _steps(parts):
        return None
    half = len(parts) // 2
    earlier, later, whole = line_of(parts[:half]), line_of(parts[half:]), line_of(parts)
    if min(whole.slowest, later.slowest, earlier.slope) <= 0:
        return None
    third, fourth = line_of(parts[half : half * 3 // 2]), line_of(parts[half * 3 // 2 :])
    if _ends_below(limit, earlier, later, window_s / 2) or (
        fourth.fastest < third.slope and _ends_below(limit, third, fourth, window_s / 4)
    ):
        return None
    return Expectation(
        later.meets_at(limit, max(whole.fastest, later.fastest)),
        later.meets_at(limit, later.slope if later.slope > earlier.slope else whole.slope),
        later.meets_at(limit, min(whole.slowest, later.slowest)),
    )


def _ends_below(limit: float, earlier: TrendLine, later: TrendLine, lasts_s: float) -> bool:
    """True if a rise that slows down ends below the limit.

    Each stretch of `lasts_s` rises as much less than the one before as `later` than `earlier`.
    """
    if later.slope >= earlier.slope:
        return False
    if later.slope <= 0:
        return later.level < limit
    ratio = later.slope / earlier.slope
    return later.level + later.slope * lasts_s * ratio / (1 - ratio) < limit


def may_rise(points: Sequence[Timed]) -> bool:
    """True if the last readings lie above the first ones; without that there is no trend.

    It costs little, and most sensors are told by it.
    """
    first = middle(one.value for one in points[:GLANCE])
    return middle(one.value for one in points[-GLANCE:]) > first


def line_of(points: Sequence[Timed]) -> TrendLine:
    """The line through two points or more, by the median of the slopes of all pairs.

    >>> line = line_of([Timed(at, 20 + at / 10) for at in range(10)])
    >>> round(line.slope, 3), round(line.level, 3)
    (0.1, 20.9)
    """
    slopes = sorted(
        (two.value - one.value) / (two.at - one.at)
        for first, one in enumerate(points)
        for two in points[first + 1 :]
    )
    count = len(points)
    spread = QUANTILE * sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = max(0, round((len(slopes) - spread) / 2))
    high = min(len(slopes) - 1, round((len(slopes) + spread) / 2))
    slope, at = middle(slopes), points[-1].at
    level = middle(one.value + slope * (at - one.at) for one in points)
    return TrendLine(slope, slopes[low], slopes[high], level, at)


def _parts(points: Sequence[Timed], window_s: float) -> list[Timed]:
    """The medians of equal parts of the window; a part without readings has none."""
    inside = [one for one in points if one.at > points[-1].at - window_s]
    found: dict[int, list[Timed]] = {}
    for one in since_gap(inside, GAP_MAX * window_s):
        found.setdefault(int(one.at * PARTS / window_s), []).append(one)
    return [
        Timed(middle(one.at for one in some), middle(one.value for one in some))
        for some in found.values()
    ]


def _steps(parts: Sequence[Timed]) -> bool:
    """True if most of the rise is one step, between some neighbours and the next ones.

    It stands out of what lies between all other neighbours, which is noise.
    """
    values = [one.value for one in parts]
    rise = middle(values[-GLANCE:]) - middle(values[:GLANCE])
    jumps = [
        middle(values[at : at + NEIGHBOURS]) - middle(values[at - NEIGHBOURS : at])
        for at in range(NEIGHBOURS, len(values) - NEIGHBOURS + 1)
    ]
    usual = middle(jumps)
    noise = middle(abs(one - usual) for one in jumps)
    return max(jumps) > STEP_MIN * rise and max(jumps) - usual > OUTSTANDING * noise
