"""Numbers that were measured: what modules tell, and what is kept of each entity."""

from collections.abc import Iterator

import msgspec

from haptera.model.entity import EntityId
from haptera.model.reading import Series

# What is older when it comes, or is told, is no news, and left out.
SAMPLE_AGE_S_MAX = 60.0


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One number: of which series of which entity, when (in s since 1970), and how much."""

    entity: EntityId
    series: Series
    at: float
    value: float


class SampleBatch(msgspec.Struct, frozen=True, gc=False):
    """What was measured of one entity at one time."""

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
    """A batch on its way, as it is told: how old it is by the teller's clock, and of what."""

    kind: str
    name: str
    age_ms: int
    values: dict[str, float]
