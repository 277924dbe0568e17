"""Routes of the numbers that machines report, and of readings that programs outside report."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nsmallest
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from haptera.api.backend import Backend
from haptera.api.requests.body import as_json, read_body
from haptera.api.requests.endpoint import (
    Caller,
    Handler,
    author,
    check_by_name,
    check_limit,
    read_query,
)
from haptera.api.requests.lines import Lines, document, wants_lines
from haptera.api.writes.patching import missing
from haptera.core.state.allowance import TURN_WORK_MAX
from haptera.core.state.limits import MS
from haptera.kinds.meaning import check_selector
from haptera.model.entity import EntityId, parse_entity
from haptera.model.errors import HapteraError, ParseError, UnknownNameError
from haptera.model.events import ReadingReported
from haptera.model.reading import SERIES_MAX, Series, split_series
from haptera.model.samples import Sample
from haptera.planner.domain.pieces import Pieces
from haptera.rest import endpoints, query
from haptera.rest.readings import REPORTED_BY, ReadingBody, ReadingsBody, ReadingsTaken
from haptera.rest.samples import POINTS_MAX, EntitySamples, SamplesView, SampleView, SeriesView
from haptera.runtime import clock
from haptera.runtime.over_turns import over_turns
from haptera.selectors.selector import Selector, parse_selector

NONE: Final = SamplesView([])
# The cost to a turn of one entity's numbers, in work of the core.
_EACH: Final = TURN_WORK_MAX // 20
_Lasts = Iterable[tuple[EntityId, Mapping[Series, Sample]]]


@dataclass(frozen=True, slots=True)
class SampleRoutes:
    backend: Backend

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.SAMPLES, self.many)
        yield Handler(endpoints.SERIES, self.series)
        yield Handler(endpoints.READINGS, self.metrics)

    async def many(self, request: Request, caller: Caller) -> Response:
        """The last number of each series, not older than two minutes, of what is selected."""
        asked = read_query(request, query.SamplesQuery)
        chosen = [] if asked.select is None else [check_selector(parse_selector(asked.select))]
        if caller.within is not None:
            check_by_name(chosen)
            chosen.append(caller.within)
        series = asked.series
        if series is not None:
            _checked(series)
        meant = await over_turns(self._meant(chosen))
        if asked.highest is not None or asked.lowest is not None:
            meant = self._ranked(meant, series, asked.highest, asked.lowest)
        found = (view for entity in meant if (view := self._of(entity, series)).series)
        return Lines(found) if wants_lines(request) else Lines(found, form=document(NONE))

    async def series(self, request: Request, _caller: Caller) -> Response:
        """The measurements of one series of an entity."""
        entity = parse_entity(request.path_params["entity"])
        if self.backend.queries.entity(entity) is None:
            raise missing(self.backend.queries, entity)
        asked = read_query(request, query.SeriesQuery)
        series = _checked(asked.series)
        reading = self.backend.samples.reading(entity.kind, series)
        if reading is None:
            raise UnknownNameError(
                f"no module measures {series!r} of a {entity.kind}",
                do=f"see what is measured of it: haptera get {entity} -o wide",
            )
        until = asked.until or clock.wall_s()
        since = until - asked.last_s
        points = await self.backend.samples.points(entity, series, since, until, asked.step_s)
        if len(points) > POINTS_MAX:
            fits = int((until - since) // POINTS_MAX) + 1
            raise HapteraError(
                f"{len(points)} points, more than {POINTS_MAX}",
                where="the query",
                do=f"ask for one of each step: step_s={fits}",
            )
        view = SeriesView(str(entity), series, reading.unit, since, until, asked.step_s, points)
        return as_json(view)

    async def metrics(self, _request: Request, _caller: Caller) -> Response:
        """The last number of each series of all entities, for Prometheus."""
        return PlainTextResponse(await over_turns(self._lines(self.backend.samples.all_last())))

    def _meant(self, chosen: list[Selector]) -> Pieces[list[EntityId]]:
        """Of what has numbers, what all of these mean."""
        found: list[EntityId] = []
        for entity, _ in self.backend.samples.all_last():
            yield _EACH
            if all(self.backend.queries.means(one, entity) for one in chosen):
                found.append(entity)
        return found

    def _ranked(
        self, meant: list[EntityId], series: str | None, highest: int | None, lowest: int | None
    ) -> list[EntityId]:
        """Those with the highest numbers of a series, or the lowest, in order; by name if equal."""
        if series is None or (highest is not None and lowest is not None):
            what, do = "one series has an order, and one at a time", "give series, and one of both"
            raise ParseError(what, where="highest and lowest in the query", do=do)
        name = Series(series)
        found = [
            (last[name].value if highest is None else -last[name].value, entity)
            for entity in meant
            if name in (last := self.backend.samples.last(entity))
        ]
        return [entity for _, entity in nsmallest(highest or lowest or 0, found)]

    def _of(self, entity: EntityId, only: str | None) -> EntitySamples:
        now = clock.wall_s()
        views: dict[str, SampleView] = {
            name: SampleView(one.value, self._unit(entity, name), max(0, int((now - one.at) * 1e3)))
            for name, one in sorted(self.backend.samples.last(entity).items())
            if only is None or name == only
        }
        return EntitySamples(str(entity), views)

    def _unit(self, entity: EntityId, series: Series) -> str:
        reading = self.backend.samples.reading(entity.kind, series)
        return "" if reading is None else reading.unit

    def _lines(self, lasts: _Lasts) -> Pieces[str]:
        """In the text format of Prometheus; no name has anything in it to be escaped."""
        text = [
            "# HELP haptera_reading The last number of a series, not older than two minutes.\n"
            "# TYPE haptera_reading gauge\n"
        ]
        for entity, last in lasts:
            yield _EACH
            labels = f'entity="{entity}",node="{entity.node or ""}"'
            text += [
                f'haptera_reading{{{labels},series="{name}"}} {one.value!r}\n'
                for name, one in last.items()
            ]
        return "".join(text)


@dataclass(frozen=True, slots=True)
class ReadingRoute:
    backend: Backend

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.OBSERVE, self.observe)

    async def observe(self, request: Request, caller: Caller) -> Response:
        """Report what was read of entities outside haptera: all of it is taken, or nothing.

        Looks are taken at once of what they can tell; until then a report is a memory.
        """
        body = await read_body(request, ReadingsBody)
        now, told = clock.now_ns(), list[ReadingReported]()
        for place, one in enumerate(body.readings):
            try:
                told.append(self._reported(one, body.source, now, caller))
            except HapteraError as error:
                error.where = f"readings[{place}]"
                raise
        await self.backend.readings.observe(told, author(request, caller).who)
        return as_json(ReadingsTaken(len(told)), status=HTTPStatus.ACCEPTED)

    def _reported(self, one: ReadingBody, source: str, now: int, caller: Caller) -> ReadingReported:
        entity, at = parse_entity(one.entity), now - one.age_ms * MS
        check_limit(entity, caller.within)
        if self.backend.desires.declared(entity) is None:
            raise missing(self.backend.queries, entity, caller.within)
        by = f"{REPORTED_BY}{source}"
        reported = ReadingReported(entity, one.variable, one.value, by, at, one.note)
        self.backend.readings.check_reading(reported)
        return reported


def _checked(text: str) -> Series:
    if split_series(text) is None or len(text) > 2 * SERIES_MAX:
        raise ParseError(
            f"{text[:40]!r} is no series",
            where="series in the query",
            do="write temp.inlet, or disk.used[/scratch] of a family",
        )
    return Series(text)
