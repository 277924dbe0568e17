"""Numbers that were measured: what modules tell, and what is kept of each entity."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from haptera.model.entity import EntityId
from haptera.model.reading import Series

# Older measurements are dropped, on sending and on arrival.
SAMPLE_AGE_S_MAX = 60.0


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One number: its entity and series, its time (in s since 1970), and its value."""

    entity: EntityId
    series: Series
    at: float
    value: float


class SampleBatch(msgspec.Struct, frozen=True, gc=False):
    """The measurements of one entity at one time."""

    entity: EntityId
    at: float
    values: dict[Series, float]

    def samples(self) -> Iterator[Sample]:
        """One by one.

        >>> batch = SampleBatch(EntityId("node", "n1", "n1"), 7.0, {Series("temp.inlet"): 21.5})
        >>> [(one.series, one.at, one.value) for one in batch.samples()]
        [('temp.inlet', 7.0, 21.5)]
        """
        for series, value in self.values.items():
            yield Sample(self.entity, series, self.at, value)


class Measurement(msgspec.Struct, frozen=True, gc=False):
    """A batch in transit: its entity, its age by the sender's clock, and its values."""

    kind: str
    name: str
    age_ms: int
    values: Mapping[Any, float]


class Point(msgspec.Struct, frozen=True, gc=False):
    """A summary of one series over one step, from `at` on."""

    at: float
    low: float
    mean: float
    high: float
    count: int


def downsampled(points: Iterable[Point], step_s: float) -> list[Point]:
    """The same points, those of one step as one.

    >>> hours = [Point(at, at, at, at, 1) for at in (0.0, 40.0, 60.0)]
    >>> [(one.at, one.low, one.mean, one.high, one.count) for one in downsampled(hours, 60)]
    [(0.0, 0.0, 20.0, 40.0, 2), (60.0, 60.0, 60.0, 60.0, 1)]
    """
    steps: dict[float, list[Point]] = {}
    for one in points:
        steps.setdefault(one.at // step_s * step_s, []).append(one)
    return [_together(at, some) for at, some in sorted(steps.items())]


def stepped(measured: Iterable[tuple[float, float]], step_s: float) -> list[Point]:
    """As `downsampled`, of numbers as they came: (when, how much)."""
    steps: dict[float, list[float]] = {}
    for at, value in measured:
        steps.setdefault(at // step_s, []).append(value)
    return [
        Point(step * step_s, min(some), sum(some) / len(some), max(some), len(some))
        for step, some in sorted(steps.items())
    ]


def whole(points: list[Point]) -> Point:
    """All these as one; there is at least one."""
    return _together(points[0].at, points)


def _together(at: float, some: list[Point]) -> Point:
    count = sum(one.count for one in some)
    mean = sum(one.mean * one.count for one in some) / count
    return Point(at, min(one.low for one in some), mean, max(one.high for one in some), count)
