"""Routes of the numbers that machines report: the last ones, a series, and all for Prometheus."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from haptera.api.backend import Backend
from haptera.api.requests.body import as_json
from haptera.api.requests.endpoint import (
    NOT_FOUND,
    Caller,
    Contract,
    Endpoint,
    check_by_name,
    number,
)
from haptera.api.requests.lines import Lines, document, wants_lines
from haptera.api.requests.query import SELECT, Query
from haptera.api.writes.patching import missing
from haptera.core.state.allowance import TURN_WORK_MAX
from haptera.kinds.meaning import check_selector
from haptera.model.entity import EntityId, parse_entity
from haptera.model.errors import HapteraError, ParseError, UnknownNameError
from haptera.model.reading import SERIES_MAX, Series, split_series
from haptera.model.samples import Sample
from haptera.model.walltime import WALL_S_MAX
from haptera.planner.domain.pieces import Pieces
from haptera.rest.samples import POINTS_MAX, EntitySamples, SamplesView, SampleView, SeriesView
from haptera.runtime import clock
from haptera.runtime.identity.tokens import Scope
from haptera.runtime.over_turns import over_turns
from haptera.selectors.selector import Selector, parse_selector

NONE: Final = SamplesView([])
LAST_S_DEFAULT: Final = 3_600
LAST_S_MAX: Final = 400 * 86_400
STEP_S_MAX: Final = 86_400

SERIES: Final = Query("series", "The series, as temp.inlet or disk.used[/scratch].", required=True)
OF_SERIES: Final = Query("series", "Only this series, as temp.inlet or disk.used[/scratch].")
LAST: Final = Query(
    "last_s",
    f"How far back to begin, in seconds; default: {LAST_S_DEFAULT}.",
    Annotated[int, Meta(ge=1, le=LAST_S_MAX)],
)
UNTIL: Final = Query(
    "until",
    "The end, in seconds since 1970; default: now.",
    Annotated[int, Meta(ge=1, le=WALL_S_MAX)],
)
STEP: Final = Query(
    "step_s",
    "One point for each step of so many seconds; default: each number as it came.",
    Annotated[int, Meta(ge=1, le=STEP_S_MAX)],
)
# The cost to a turn of one entity's numbers, in work of the core.
_EACH: Final = TURN_WORK_MAX // 20
_Lasts = Iterable[tuple[EntityId, Mapping[Series, Sample]]]


@dataclass(frozen=True, slots=True)
class SampleRoutes:
    backend: Backend

    def endpoints(self) -> Iterator[Endpoint]:
        contract = Contract(gives=SamplesView, queries=(SELECT, OF_SERIES), lines=EntitySamples)
        yield Endpoint("GET", "/v1/samples", Scope.READ, self.many, contract, narrows=True)
        contract = Contract(
            gives=SeriesView, queries=(SERIES, LAST, UNTIL, STEP), problems=(NOT_FOUND,)
        )
        path = "/v1/entities/{entity}/samples"
        yield Endpoint("GET", path, Scope.READ, self.series, contract)
        contract = Contract(media_type="text/plain")
        yield Endpoint("GET", "/metrics/readings", Scope.READ, self.metrics, contract)

    async def many(self, request: Request, caller: Caller) -> Response:
        """The last number of each series, not older than two minutes, of what is selected."""
        texts = [text for text in (request.query_params.get("select"),) if text is not None]
        chosen = [check_selector(parse_selector(text)) for text in texts]
        if caller.within is not None:
            check_by_name(chosen)
            chosen.append(caller.within)
        series = request.query_params.get("series")
        if series is not None:
            _checked(series)
        meant = await over_turns(self._meant(chosen))
        found = (view for entity in meant if (view := self._of(entity, series)).series)
        return Lines(found) if wants_lines(request) else Lines(found, form=document(NONE))

    async def series(self, request: Request, _caller: Caller) -> Response:
        """The measurements of one series of an entity."""
        entity = parse_entity(request.path_params["entity"])
        if self.backend.entity(entity) is None:
            raise missing(self.backend, entity)
        series = _checked(request.query_params["series"])
        reading = self.backend.samples.reading(entity.kind, series)
        if reading is None:
            raise UnknownNameError(
                f"no module measures {series!r} of a {entity.kind}",
                do=f"see what is measured of it: haptera get {entity} -o wide",
            )
        until = number(request, UNTIL.name, None, least=1, most=WALL_S_MAX) or clock.wall_s()
        last_s = number(request, LAST.name, LAST_S_DEFAULT, least=1, most=LAST_S_MAX)
        step_s = number(request, STEP.name, None, least=1, most=STEP_S_MAX)
        since = until - (last_s or 0)
        points = await self.backend.samples.points(entity, series, since, until, step_s)
        if len(points) > POINTS_MAX:
            fits = int((until - since) // POINTS_MAX) + 1
            raise HapteraError(
                f"{len(points)} points, more than {POINTS_MAX}",
                where="the query",
                do=f"ask for one of each step: step_s={fits}",
            )
        view = SeriesView(str(entity), series, reading.unit, since, until, step_s, points)
        return as_json(view)

    async def metrics(self, _request: Request, _caller: Caller) -> Response:
        """The last number of each series of all entities, for Prometheus."""
        return PlainTextResponse(await over_turns(self._lines(self.backend.samples.all_last())))

    def _meant(self, chosen: list[Selector]) -> Pieces[list[EntityId]]:
        """Of what has numbers, what all of these mean."""
        found: list[EntityId] = []
        for entity, _ in self.backend.samples.all_last():
            yield _EACH
            if all(self.backend.means(one, entity) for one in chosen):
                found.append(entity)
        return found

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


def _checked(text: str) -> Series:
    if split_series(text) is None or len(text) > 2 * SERIES_MAX:
        raise ParseError(
            f"{text[:40]!r} is no series",
            where="series in the query",
            do="write temp.inlet, or disk.used[/scratch] of a family",
        )
    return Series(text)
