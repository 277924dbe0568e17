"""What would come of changes: the plan that they would start, before anything is written."""

from dataclasses import dataclass
from typing import Final

from haptera.core.draft import Case, Draft, Drafting
from haptera.core.grouping import Answered, Grounds, plan_of
from haptera.core.limits import PREVIEW_WITHIN_NS
from haptera.core.outcomes import Outcomes, outcomes
from haptera.core.proposals import Proposals
from haptera.core.searches import Searches
from haptera.core.sought import sought
from haptera.core.timers import Timers
from haptera.core.turn import Turn
from haptera.model.chain import Chain, NoChain, gives_up
from haptera.model.changes import Change
from haptera.model.effects import Show
from haptera.model.events import Considered

# Previews that wait for plans; past it they are shown with what is planned by then.
PREVIEWS_MAX: Final = 16


@dataclass(slots=True)
class Preview:
    """Changes that somebody considers, being drafted, and until when plans are waited for.

    They are waited for `within` so long once it is drafted: how long that takes is not theirs.
    It is `put_off` where a turn had no time for all that is to be drafted and planned.
    """

    ticket: int
    changes: tuple[Change, ...]
    drafting: Drafting
    until: int
    within: int
    drafted: bool = False
    put_off: bool = False


class Previews:
    """Shows what would come of changes once all of it is planned, by workers too, or time is up."""

    def __init__(
        self, grounds: Grounds, proposals: Proposals, searches: Searches, timers: Timers
    ) -> None:
        self._grounds = grounds
        self._proposals = proposals
        self._searches = searches
        self._timers = timers
        self._open: dict[int, Preview] = {}

    def consider(self, turn: Turn, event: Considered) -> None:
        if problem := self._proposals.problem(event.changes):
            turn.effects.append(Show(event.ticket, None, *problem))
            return
        within = PREVIEW_WITHIN_NS if len(self._open) < PREVIEWS_MAX else 0
        drafting = self._drafting(event.changes)
        until = turn.now + within
        self._show(turn, Preview(event.ticket, event.changes, drafting, until, within))

    def tend(self, turn: Turn) -> None:
        """Show those for which all is planned by now, or that have waited long enough."""
        if self._open:
            # Or a busy parent, which takes up all of each turn, would never plan what people ask.
            self._grounds.catalog.let_in()
        for preview in list(self._open.values()):
            waits = self._searches.waits(preview.ticket) and not preview.put_off
            if turn.now >= preview.until or not waits:
                self._show(turn, preview)

    def _show(self, turn: Turn, preview: Preview) -> None:
        """Show it, unless plans are missing that are worth waiting for."""
        preview.put_off = False
        draft = self._draft(turn, preview)
        cases = () if draft is None else draft.cases
        answered = [self._answered(turn, case, preview) for case in cases]
        waits = preview.put_off or self._searches.waits(preview.ticket)
        if draft is None or (turn.now < preview.until and waits):
            self._open[preview.ticket] = preview
            again_at = turn.now if preview.put_off else preview.until
            self._timers.set(("preview", preview.ticket), again_at)
            return
        self._searches.release(preview.ticket)
        self._open.pop(preview.ticket, None)
        self._timers.drop(("preview", preview.ticket))
        told = plan_of(self._grounds, draft, answered, turn.now)
        turn.effects.append(Show(preview.ticket, told))

    def _draft(self, turn: Turn, preview: Preview) -> Draft | None:
        """The draft, once it is made; anew where something else is desired since."""
        if preview.drafting.stale:
            preview.drafting = self._drafting(preview.changes)
        draft = preview.drafting.go_on()
        while draft is None and turn.now >= preview.until:
            draft = preview.drafting.go_on()
        if draft is not None and not preview.drafted:
            preview.drafted, preview.until = True, turn.now + preview.within
        preview.put_off = draft is None
        return draft

    def _drafting(self, changes: tuple[Change, ...]) -> Drafting:
        return Drafting(self._grounds.table, self._grounds.catalog, changes)

    def _answered(self, turn: Turn, case: Case, preview: Preview) -> Answered:
        plan = self._plan(case, case.state)
        if plan is None:
            preview.put_off = True
        elif gives_up(plan):
            question = sought(case.domain, case.state, case.goal, frozenset())
            verdict = self._searches.ask(turn, preview.ticket, question)
            plan = None if verdict is None else verdict.answer
        return Answered(case, plan, self._outcomes(case, plan, preview))

    def _outcomes(
        self, case: Case, plan: Chain | NoChain | None, preview: Preview
    ) -> Outcomes | None:
        """All that may come of it, as far as the core can afford to plan it."""
        if plan is None:
            return None

        def planned(state: int) -> Chain | NoChain | None:
            return plan if state == case.state else self._plan(case, state)

        found = outcomes(case.domain, case.state, planned)
        if found is None:
            preview.put_off = True
        return found

    def _plan(self, case: Case, state: int) -> Chain | NoChain | None:
        return self._grounds.catalog.plan(case.row, case.node, state, case.goal, frozenset())
