"""What would come of changes: the chains that they would start, before anything is written."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from haptera.core.catalog import Catalog
from haptera.core.diff import goal as goal_of
from haptera.core.limits import PREVIEW_WITHIN_NS
from haptera.core.proposals import Proposals
from haptera.core.query import view
from haptera.core.rows.row import Row
from haptera.core.rows.table import Table
from haptera.core.searches import PLANNED, Searches
from haptera.core.sought import sought
from haptera.core.state import start
from haptera.core.timers import Timers
from haptera.core.turn import Turn
from haptera.model.chain import Chain, NoChain, ReasonKind, gives_up
from haptera.model.changes import Change
from haptera.model.effects import Show
from haptera.model.events import Considered
from haptera.model.views import Condition, EntityView

# Previews that wait for plans; past it they are shown with what is planned by then.
PREVIEWS_MAX: Final = 16


@dataclass(slots=True)
class Preview:
    """Changes that somebody considers, and until when plans are waited for.

    It is `put_off` where a turn had no time for all that is to be planned.
    """

    ticket: int
    changes: tuple[Change, ...]
    until: int
    put_off: bool = False


class Previews:
    """Shows what would come of changes once all of it is planned, by workers too, or time is up."""

    def __init__(
        self,
        table: Table,
        catalog: Catalog,
        proposals: Proposals,
        searches: Searches,
        timers: Timers,
    ) -> None:
        self._table = table
        self._catalog = catalog
        self._proposals = proposals
        self._searches = searches
        self._timers = timers
        self._open: dict[int, Preview] = {}

    def consider(self, turn: Turn, event: Considered) -> None:
        if problem := self._proposals.problem(event.changes):
            turn.effects.append(Show(event.ticket, (), problem))
            return
        until = turn.now + (PREVIEW_WITHIN_NS if len(self._open) < PREVIEWS_MAX else 0)
        self._show(turn, Preview(event.ticket, event.changes, until))

    def tend(self, turn: Turn) -> None:
        """Show those for which all is planned by now, or that have waited long enough."""
        for preview in list(self._open.values()):
            waits = self._searches.waits(preview.ticket) and not preview.put_off
            if turn.now >= preview.until or not waits:
                self._show(turn, preview)

    def _show(self, turn: Turn, preview: Preview) -> None:
        """Show it, unless plans are missing that are worth waiting for."""
        preview.put_off = False
        views = tuple(self._views(turn, preview))
        if turn.now < preview.until and (preview.put_off or self._searches.waits(preview.ticket)):
            self._open[preview.ticket] = preview
            again_at = turn.now if preview.put_off else preview.until
            self._timers.set(("preview", preview.ticket), again_at)
            return
        self._searches.release(preview.ticket)
        self._open.pop(preview.ticket, None)
        self._timers.drop(("preview", preview.ticket))
        turn.effects.append(Show(preview.ticket, views))

    def _views(self, turn: Turn, preview: Preview) -> Iterator[EntityView]:
        draft = self._table.copy()
        for change in preview.changes:
            draft.apply(change, 0)
        for row in sorted(draft, key=lambda row: str(row.id)):
            if self._stand(turn, row, draft, preview):
                yield view(row, turn.now)

    def _stand(self, turn: Turn, row: Row, draft: Table, preview: Preview) -> bool:
        """Have the entity stand where it would; tell whether it would not be as desired."""
        node = draft.node_of(row)
        domain = self._catalog.domain(row, node)
        goal = goal_of(row, domain)
        if not goal or (row.resident and row.id.node is None):
            return False
        state = start(row, node, domain, goal)
        if domain.meets(state, goal):
            return False
        plan = self._catalog.plan(row, node, state, goal, frozenset())
        if plan is None:
            preview.put_off = True
        elif gives_up(plan):
            question = sought(domain, state, goal, frozenset())
            verdict = self._searches.ask(turn, preview.ticket, question)
            plan = None if verdict is None else verdict.answer
        row.plan = plan
        row.condition, row.why = _standing(plan)
        return True


def _standing(plan: Chain | NoChain | None) -> tuple[Condition, str | None]:
    if plan is None:
        return Condition.ACTING, PLANNED
    if isinstance(plan, Chain):
        return Condition.ACTING, None
    waits = plan.reason.kind is ReasonKind.WAITS
    return (Condition.WAITING if waits else Condition.STUCK), plan.reason.text
