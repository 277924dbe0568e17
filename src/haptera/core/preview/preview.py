"""The plan that changes would start, computed before anything is written."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from haptera.core.decide.plan_queue import PlanQueue
from haptera.core.desired.proposal_validation import Checked, ProposalRefusal
from haptera.core.desired.proposals import Proposals
from haptera.core.preview.draft import Case, Drafting
from haptera.core.preview.grouping import AnsweredCase, PreviewContext, Telling
from haptera.core.state.limits import S
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.model.chain import Chain, NoChain, gives_up
from haptera.model.changes import Change
from haptera.model.effects import PlanReply
from haptera.model.events import Considered
from haptera.planner.contingent import Outcomes, outcomes
from haptera.planner.domain.bars import NO_BARS
from haptera.planner.domain.pieces import Whole
from haptera.planner.plan_query import PlanQuery, query_of

# How long a person who considers changes waits for plans that take long.
PREVIEW_WITHIN_NS: Final = 10 * S

# Previews that wait for plans; past it they are shown with what is planned by then.
PREVIEWS_MAX: Final = 16


@dataclass(slots=True)
class Preview:
    """Changes that somebody considers, being drafted, and until when plans are waited for.

    They are waited for `within` so long once it is drafted: how long that takes is not theirs.
    Then it is answered. It is `put_off` where a turn had no time for all that is to be done.
    """

    ticket: int
    changes: tuple[Change, ...]
    drafting: Drafting
    until: int
    within: int
    drafted: bool = False
    telling: Telling | None = None
    put_off: bool = False


class Previews:
    """Shows what would come of changes once all of it is planned, by workers too, or time is up."""

    def __init__(
        self, grounds: PreviewContext, proposals: Proposals, searches: PlanQueue, timers: Timers
    ) -> None:
        self._grounds = grounds
        self._proposals = proposals
        self._searches = searches
        self._timers = timers
        self._open: dict[int, Preview] = {}

    def consider(self, turn: Turn, event: Considered) -> None:
        """Plan it once it is checked, after what was proposed before."""
        self._proposals.checks.ask(turn, event.changes, partial(self._checked, event))

    def _checked(self, event: Considered, turn: Turn, found: Checked) -> None:
        if isinstance(found, ProposalRefusal):
            turn.effects.append(PlanReply(event.ticket, None, found.text, found.cause))
            return
        within = PREVIEW_WITHIN_NS if len(self._open) < PREVIEWS_MAX else 0
        drafting, until = self._drafting(event.changes), turn.now + within
        # It is begun when the turn ends.
        self._open[event.ticket] = Preview(event.ticket, event.changes, drafting, until, within)

    def advance(self, turn: Turn) -> None:
        """Go on with those for which all is planned by now, or that have waited long enough."""
        if self._open:
            # Or a busy parent, which takes up all of each turn, would never plan what people ask.
            turn.allowance.let_in()
        for preview in list(self._open.values()):
            waits = self._searches.waits(preview.ticket) and not preview.put_off
            if turn.now >= preview.until or not waits:
                self._go_on(turn, preview)

    def _go_on(self, turn: Turn, preview: Preview) -> None:
        """Show it, unless plans are missing that are worth waiting for, or there is no time."""
        preview.put_off = False
        if preview.drafting.stale:
            # Something else is desired since.
            preview.drafting, preview.telling = self._drafting(preview.changes), None
        if preview.telling is None:
            preview.telling = self._planned(turn, preview)
        told = None if preview.telling is None else _in_time(turn, preview, preview.telling.go_on)
        if told is None:
            again_at = turn.now if preview.put_off else preview.until
            self._timers.set(("preview", preview.ticket), again_at)
            return
        self._searches.release(preview.ticket)
        del self._open[preview.ticket]
        self._timers.drop(("preview", preview.ticket))
        turn.effects.append(PlanReply(preview.ticket, told))

    def _planned(self, turn: Turn, preview: Preview) -> Telling | None:
        """The answer, once it is drafted, and planned as far as is worth waiting for."""
        draft = _in_time(turn, preview, preview.drafting.go_on)
        if draft is None:
            return None
        if not preview.drafted:
            preview.drafted, preview.until = True, turn.now + preview.within
        answered = [self._answered(turn, case, preview) for case in draft.cases]
        if turn.now < preview.until and (preview.put_off or self._searches.waits(preview.ticket)):
            return None
        preview.put_off = False
        return Telling(self._grounds, draft, answered, turn.now)

    def _drafting(self, changes: tuple[Change, ...]) -> Drafting:
        return Drafting(self._grounds.table, self._grounds.catalog, changes)

    def _answered(self, turn: Turn, case: Case, preview: Preview) -> AnsweredCase:
        query = query_of(case.domain, case.state, case.goal, NO_BARS)
        plan = self._plan(turn, query)
        if plan is None:
            preview.put_off = True
        elif gives_up(plan):
            verdict = self._searches.ask(turn, preview.ticket, query)
            plan = None if verdict is None else verdict.answer
        return AnsweredCase(case, plan, self._outcomes(turn, query, plan, preview))

    def _outcomes(
        self, turn: Turn, query: PlanQuery, plan: Chain | NoChain | None, preview: Preview
    ) -> Outcomes | None:
        """All that may come of it, as far as the core can afford to plan it."""
        if plan is None:
            return None

        def planned(state: int) -> Chain | NoChain | None:
            return plan if state == query.start else self._plan(turn, replace(query, start=state))

        found = outcomes(query.domain, query.start, planned)
        if found is None:
            preview.put_off = True
        return found

    def _plan(self, turn: Turn, query: PlanQuery) -> Chain | NoChain | None:
        return self._grounds.catalog.plans.plan(query, turn.allowance)


def _in_time(turn: Turn, preview: Preview, go_on: Callable[[], Whole | None]) -> Whole | None:
    """The whole of what is made in pieces, once it is; at once where time is up."""
    whole = go_on()
    while whole is None and turn.now >= preview.until:
        whole = go_on()
    preview.put_off = whole is None
    return whole
