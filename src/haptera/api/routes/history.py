"""Routes of the past: who changed what, when and why, and undoing it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from haptera.api.backend import Backend
from haptera.api.requests.body import as_json
from haptera.api.requests.endpoint import (
    Caller,
    Handler,
    author,
    narrowed,
    read_query,
)
from haptera.api.requests.lines import listing
from haptera.api.writes.planning import Planning
from haptera.core.desired.revert import revert
from haptera.core.views.lemons import FOLLOWED, Counts, count_troubles, lemons
from haptera.kinds import health, node
from haptera.kinds.meaning import check_selector
from haptera.model.answers.past import Page
from haptera.model.changes import Change
from haptera.model.entity import EntityId
from haptera.model.errors import Code, HapteraError
from haptera.model.walltime import utc_text_s
from haptera.queue.job import Job, JobState
from haptera.rest import endpoints, query
from haptera.rest.lemons import Lemons
from haptera.rest.schemas import Audit, Happenings, Past
from haptera.runtime.reading_threads import in_reading_thread
from haptera.selectors.selector import ALL, parse_selector

# By so much the clock of a caller who asks how it was just now may be ahead of the parent's.
CLOCKS_APART_S_MAX: Final = 60
DAY_S: Final = 86_400
# So many changes of the health of nodes are read to count them.
HEALTH_CHANGES_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class HistoryRoutes:
    backend: Backend
    planning: Planning
    wall_s: Callable[[], float]

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.HISTORY, self.history)
        yield Handler(endpoints.HAPPENINGS, self.happenings)
        yield Handler(endpoints.PAST, self.past)
        yield Handler(endpoints.LEMONS, self.lemons)
        yield Handler(endpoints.AUDIT, self.audit)
        yield Handler(endpoints.REVERT, self.revert)

    async def history(self, request: Request, caller: Caller) -> Response:
        """What was changed of what is selected, latest first; `before` is the next page.

        As lines, the header Link names the next page.
        """
        chosen = _chosen(request, caller)
        asked = read_query(request, query.PageQuery)
        page = await in_reading_thread(
            self.backend.records.past, chosen, before=asked.before, count_max=asked.limit
        )
        return listing(request, page, page.changes, _next(request, page))

    async def happenings(self, request: Request, caller: Caller) -> Response:
        """What was seen of what is selected, where it stood, what was tried, latest first."""
        limit = read_query(request, query.LatestQuery).limit
        chosen = _chosen(request, caller)
        found = await in_reading_thread(self.backend.records.happened, chosen, limit)
        return listing(request, Happenings(found), found)

    async def past(self, request: Request, caller: Caller) -> Response:
        """How what is selected was at a time, in seconds since 1970."""
        at_s = read_query(request, query.TimeQuery).at
        if at_s > self.wall_s() + CLOCKS_APART_S_MAX:
            what = f"{utc_text_s(at_s)} is in the future"
            do = "give a time in the past"
            raise HapteraError(what, where="at in the query", do=do)
        chosen = _chosen(request, caller)
        found = await self.backend.records.at(chosen, at_s)
        return listing(request, Past(at_s, found), found)

    async def lemons(self, request: Request, caller: Caller) -> Response:
        """The nodes on which anything went wrong in the last days, the worst first."""
        asked = read_query(request, query.LemonsQuery)
        since = self.wall_s() - asked.days * DAY_S
        meant = check_selector(parse_selector(asked.select or f"{node.kind.name}:*"))
        views = await self.backend.queries.entities([narrowed(meant, caller)])
        nodes = {one.name for one in views if one.kind == node.kind.name}
        ended = self.backend.jobs.queue.ended()
        failed = [one.holder for one in ended if _failed(one, since) and one.holder is not None]
        counts = await in_reading_thread(self._counts, failed, since)
        return as_json(Lemons(since, len(nodes), lemons(nodes, counts)))

    def _counts(self, failed_jobs: Sequence[str], since: float) -> Counts:
        """The troubles of all nodes; files are read."""
        health_of = self.backend.records.past(_is_health, before=None, count_max=HEALTH_CHANGES_MAX)
        happened = self.backend.records.happened_since(FOLLOWED, since)
        return count_troubles(happened, health_of.changes, failed_jobs, since)

    async def audit(self, request: Request, caller: Caller) -> Response:
        """What was asked for of all that changes anything, by whom, latest first.

        To a limited token: what concerns its entities, and how many changes of a write do.
        """
        limit = read_query(request, query.LimitQuery).limit
        found = await in_reading_thread(self.backend.records.deeds, caller.within, limit)
        return listing(request, Audit(found), found)

    async def revert(self, request: Request, caller: Caller) -> Response:
        """Undo the write that made a revision, unless something was changed since."""
        text = request.path_params["revision"]
        changed = (
            await in_reading_thread(self.backend.records.written, int(text)) if _is(text) else []
        )
        if not changed:
            raise HapteraError(
                f"no change of revision {text} is known",
                do="see which there are: haptera history, or GET /v1/history",
                code=Code.NOT_FOUND,
            )

        async def make() -> tuple[Change, ...]:
            return revert(changed, self.backend.desires.declared)

        by = author(request, caller)
        by = replace(by, why=by.why or f"revert of {changed[0].revision}")
        return as_json(await self.planning.apply(request, make, by))


def _chosen(request: Request, caller: Caller) -> Callable[[EntityId], bool]:
    """What the query selects of what the caller may see."""
    selector = check_selector(parse_selector(request.query_params.get("select", ALL)))
    if not selector.by_name:
        what = f"{selector}: past states are selected by names"
        raise HapteraError(what, do="name them; haptera get -o name SELECTOR prints names")
    return narrowed(selector, caller).could_mean


def _is_health(entity: EntityId) -> bool:
    return entity.kind == health.kind.name


def _failed(job: Job, since: float) -> bool:
    return job.state is JobState.FAILED and (job.ended_s or 0.0) >= since


def _next(request: Request, page: Page) -> dict[str, str] | None:
    """Where the next page is, as a header (RFC 8288)."""
    if page.before is None:
        return None
    url = request.url.include_query_params(before=page.before)
    return {"Link": f'<{url.path}?{url.query}>; rel="next"'}


def _is(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19
