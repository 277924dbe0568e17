"""The filters of a pipeline: each makes of the readings of a sensor what the next stage sees."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from haptera.health.readings import Timed, middle
from haptera.model.walltime import duration_text


@dataclass(frozen=True, slots=True)
class Within:
    """Readings that the sensor can have; others are its failure, and say nothing."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"within {self.low:g} {self.high:g}"


@dataclass(frozen=True, slots=True)
class Median:
    """The median of the last so many readings: one that jumps and comes back is not seen."""

    count: int

    def __str__(self) -> str:
        return f"median {self.count}"


@dataclass(frozen=True, slots=True)
class Rise:
    """By how much a counter rose since the reading before, whether it was reset or not."""

    def __str__(self) -> str:
        return "rise"


@dataclass(frozen=True, slots=True)
class Decay:
    """The sum of all so far, where what is older counts less: half after each half-life."""

    half_life_s: int

    def __str__(self) -> str:
        return f"decay {duration_text(self.half_life_s * 1_000)}"


Filter = Within | Median | Rise | Decay


def filtered(points: Sequence[Timed], filters: Sequence[Filter]) -> Sequence[Timed]:
    """What is left of these points after all filters."""
    for one in filters:
        match one:
            case Within(low, high):
                points = [point for point in points if low <= point.value <= high]
            case Median(count):
                points = list(_medians(points, count))
            case Rise():
                points = list(_rises(points))
            case Decay(half_life_s):
                points = list(_decaying(points, half_life_s))
    return points


def _medians(points: Sequence[Timed], count: int) -> Iterator[Timed]:
    for end in range(count, len(points) + 1):
        some = points[end - count : end]
        # Of the moment in the middle: a ramp is not seen late.
        yield Timed(some[count // 2].at, middle(one.value for one in some))


def _rises(points: Sequence[Timed]) -> Iterator[Timed]:
    """A counter that falls was reset; one that is back at once where it was, was misread."""
    last: float | None = None
    before_fall: float | None = None
    for one in points:
        if last is None:
            last = one.value
            continue
        if before_fall is not None and one.value >= before_fall:
            last = before_fall
        before_fall = last if one.value < last else None
        yield Timed(one.at, max(0.0, one.value - last))
        last = one.value


def _decaying(points: Sequence[Timed], half_life_s: float) -> Iterator[Timed]:
    level, at = 0.0, points[0].at if points else 0.0
    for one in points:
        level = level * 0.5 ** ((one.at - at) / half_life_s) + one.value
        at = one.at
        yield Timed(at, level)
