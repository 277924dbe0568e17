"""Numbers that machines report, as JSON over the API."""

import msgspec

from haptera.model.samples import Point

# Points in one answer: more are refused, with the step that fits.
POINTS_MAX = 10_000


class SampleView(msgspec.Struct, frozen=True):
    """The last number of a series, its unit, and how old it is."""

    value: float
    unit: str
    age_ms: int


class EntitySamples(msgspec.Struct, frozen=True):
    """The last numbers of one entity, by series: those that are not older than two minutes."""

    entity: str
    series: dict[str, SampleView]


class SamplesView(msgspec.Struct, frozen=True):
    """The last numbers of entities."""

    entities: list[EntitySamples]


class SeriesView(msgspec.Struct, frozen=True):
    """The measurements of one series from `since_s` until `until_s`, in seconds since 1970.

    With a `step_s` the numbers of each step are one point, with the lowest, their mean, and the
    highest. Without it they are as they came, where that is still known, else of steps of 5 min.
    """

    entity: str
    series: str
    unit: str
    since_s: float
    until_s: float
    step_s: int | None
    points: list[Point]
