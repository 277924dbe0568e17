"""The measurements at a parent: the last of each series, its listeners, and what is kept."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from haptera.core.engine import Engine
from haptera.daemon.samples.sampling import sample_key
from haptera.model.entity import EntityId
from haptera.model.parts import Context
from haptera.model.reading import SERIES_MAX, Reading, Series, fitting, split_series
from haptera.model.samples import SAMPLE_AGE_S_MAX, Measurement, Point, Sample, SampleBatch
from haptera.runtime.samples.sample_store import SampleStore
from haptera.sdk.boundary import Boundary

# An older measurement no longer counts as the state of a machine.
FRESH_S: Final = 120.0
# The cache of series sets known to be valid, each as a node sends it.
SETS_MAX: Final = 4_096

Listener = Callable[[SampleBatch], None]
_Limits = tuple[tuple[float, float], ...]


class SampleBoard:
    """The numbers of one parent; all of it is used in the loop's own thread.

    >>> board.subscribe(lambda batch: ...)                       # doctest: +SKIP
    >>> await board.window(entity, "temp.inlet", since, until)   # doctest: +SKIP
    """

    def __init__(self, engine: Engine, store: SampleStore, wall_s: Callable[[], float]) -> None:
        self._engine = engine
        self._store = store
        self._wall_s = wall_s
        self._last: dict[EntityId, dict[Series, Sample]] = {}
        self._listeners: dict[int, Listener] = {}
        self._sound: dict[tuple[str, tuple[str, ...]], _Limits | None] = {}
        self._declared_by = engine.catalog.manifests
        self._declared: dict[tuple[str, Context | None], dict[str, Reading]] = {}
        self.counts: Counter[str] = Counter()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Pass each batch to the listener as it comes; the returned function ends the subscription.

        It is called in the loop, 1,000 times a second in a large cluster: it must be quick.
        """
        key = max(self._listeners, default=0) + 1
        self._listeners[key] = listener

        def end() -> None:
            self._listeners.pop(key, None)

        return end

    async def window(
        self, entity: EntityId, series: Series, since: float, until: float
    ) -> list[tuple[float, float]]:
        """The measurements of a series in this time, as (time, value), the oldest first."""
        return [(one.at, one.mean) for one in await self.points(entity, series, since, until)]

    async def points(
        self,
        entity: EntityId,
        series: Series,
        since: float,
        until: float,
        step_s: int | None = None,
    ) -> list[Point]:
        """The points of a series in this time, those of each step as one."""
        return await self._store.read(str(entity), series, since, until, step_s)

    def last(self, entity: EntityId) -> Mapping[Series, Sample]:
        """The last of each series of an entity, as far as it is fresh."""
        since = self._wall_s() - FRESH_S
        found = self._last.get(entity, {})
        return {name: one for name, one in found.items() if one.at >= since}

    def measured_last(self, entity: EntityId, series: str) -> float | None:
        """The last number of a series, where it is fresh."""
        found = self._last.get(entity, {}).get(Series(series))
        fresh = found is not None and found.at >= self._wall_s() - FRESH_S
        return found.value if found is not None and fresh else None

    def all_last(self) -> Iterable[tuple[EntityId, Mapping[Series, Sample]]]:
        """As `last`, for each entity with fresh measurements."""
        for entity in list(self._last):
            if found := self.last(entity):
                yield entity, found

    def reading(self, kind: str, series: str) -> Reading | None:
        """The declaration of this series by any module."""
        named = split_series(series)
        return None if named is None else self._readings(kind, None).get(named[0])

    def measured(self, peer: str, told: Iterable[Measurement]) -> None:
        """Receive the measurements of a node's modules, of the node and of what is on it."""
        for one in told:
            entity = sample_key(peer, one.kind, one.name)
            if self._engine.table.get(entity) is None:
                self.counts["of no entity"] += len(one.values)
            elif one.age_ms > SAMPLE_AGE_S_MAX * 1_000:
                self.counts["out of time"] += len(one.values)
            else:
                values = self._fitting(one.kind, one.values)
                self.counts["not declared, or impossible"] += len(one.values) - len(values)
                if values:
                    self.add(entity, one.age_ms / 1_000, values)

    def add(self, entity: EntityId, age_s: float, values: dict[Series, float]) -> None:
        """Keep measurements of this age, and pass them on: of too many series, the first."""
        known = self._last.setdefault(entity, {})
        if len(known) + len(values) > SERIES_MAX:
            values = self._admitted(entity, known, values)
        if not values:
            return
        batch = SampleBatch(entity, self._wall_s() - age_s, values)
        known.update((one.series, one) for one in batch.samples())
        self._store.add(batch)
        for listener in list(self._listeners.values()):
            with Boundary(f"what follows the numbers of {entity}"):
                listener(batch)

    def heed(self, changed: Iterable[EntityId]) -> None:
        """Forget the measurements of those entities that are gone."""
        for entity in changed:
            if entity in self._last and self._engine.table.get(entity) is None:
                del self._last[entity]

    def _admitted(
        self, entity: EntityId, known: dict[Series, Sample], values: Mapping[Series, float]
    ) -> dict[Series, float]:
        """Those of series that are known, and of so many others as there is room for."""
        fresh = self.last(entity)
        for name in [name for name in known if name not in fresh]:
            del known[name]
        room = SERIES_MAX - len(known)
        new = [name for name in values if name not in known]
        self.counts["too many of one entity"] += len(new[room:])
        left = {*new[room:]}
        return {name: value for name, value in values.items() if name not in left}

    def _fitting(self, kind: str, told: Mapping[str, float]) -> dict[Series, float]:
        """The valid measurements of a node; sets of names that come again are checked quickly."""
        readings, names = self._readings(kind, Context.SELF), tuple(told)
        if (kind, names) not in self._sound:
            if len(self._sound) >= SETS_MAX:
                self._sound.clear()
            self._sound[kind, names] = self._limits(readings, names)
        limits = self._sound[kind, names]
        if limits is not None and all(
            low <= value <= high for (low, high), value in zip(limits, told.values(), strict=True)
        ):
            return {Series(name): value for name, value in told.items()}
        return fitting(readings, told)

    def _limits(self, readings: Mapping[str, Reading], names: tuple[str, ...]) -> _Limits | None:
        """The range of each of the series that may be sent together."""
        found = [readings.get((split_series(name) or ("", None))[0]) for name in names]
        limits = tuple((one.low, one.high) for one in found if one is not None)
        if len(limits) < len(names):
            return None
        inside = {name: low for name, (low, _) in zip(names, limits, strict=True)}
        return limits if len(fitting(readings, inside)) == len(names) else None

    def _readings(self, kind: str, context: Context | None) -> dict[str, Reading]:
        """The readings that modules declare of a kind, by name; of one context, if it is given."""
        manifests = self._engine.catalog.manifests
        if self._declared_by is not manifests:
            # A module was replaced: what it declares now counts.
            self._declared_by = manifests
            self._declared.clear()
            self._sound.clear()
        key = kind, context
        if key not in self._declared:
            self._declared[key] = {
                reading.name: reading
                for manifest in manifests.values()
                if context in (None, manifest.context)
                for sampler in manifest.samplers
                if sampler.kind == kind
                for reading in sampler.readings
            }
        return self._declared[key]
