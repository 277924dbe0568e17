"""The filters of a pipeline: each makes of the readings of a sensor what the next stage sees."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
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


class FilterChain:
    """Filters, one after the other, as readings come in; what each remembers of them is here."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        self._stages = [_stage(one) for one in filters]

    def feed(self, one: Timed) -> Timed | None:
        """A reading after all filters; None where one of them drops it."""
        left: Timed | None = one
        for stage in self._stages:
            if left is None:
                return None
            left = stage(left)
        return left


def filtered(points: Iterable[Timed], filters: Sequence[Filter]) -> list[Timed]:
    """These readings after all filters, without the dropped ones."""
    chain = FilterChain(filters)
    return [left for one in points if (left := chain.feed(one)) is not None]


Stage = Callable[[Timed], Timed | None]


def _stage(one: Filter) -> Stage:
    match one:
        case Within(low, high):
            return lambda point: point if low <= point.value <= high else None
        case Median(count):
            return _Medians(count).feed
        case Rise():
            return _Rises().feed
        case Decay(half_life_s):
            return _Sum(half_life_s).feed


class _Medians:
    def __init__(self, count: int) -> None:
        self._last: deque[Timed] = deque(maxlen=count)
        self._count = count

    def feed(self, one: Timed) -> Timed | None:
        self._last.append(one)
        if len(self._last) < self._count:
            return None
        # The time of the middle reading: so the median of a ramp is not late.
        return Timed(self._last[self._count // 2].at, middle(each.value for each in self._last))


class _Rises:
    """A counter that falls was reset; one that is back at once where it was, was misread."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._before_fall: float | None = None

    def feed(self, one: Timed) -> Timed | None:
        last, self._last = self._last, one.value
        if last is None:
            return None
        if self._before_fall is not None and one.value >= self._before_fall:
            last = self._before_fall
        self._before_fall = last if one.value < last else None
        return Timed(one.at, max(0.0, one.value - last))


class _Sum:
    def __init__(self, half_life_s: float) -> None:
        self._half_life_s = half_life_s
        self._level = 0.0
        self._at: float | None = None

    def feed(self, one: Timed) -> Timed:
        passed_s = 0.0 if self._at is None else one.at - self._at
        self._level = self._level * 0.5 ** (passed_s / self._half_life_s) + one.value
        self._at = one.at
        return Timed(one.at, self._level)
