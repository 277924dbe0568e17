"""The entities decided on in a turn: all that something happened to, while there is time."""

from dataclasses import dataclass
from typing import Final

from haptera.core.decide.agents import Agents
from haptera.core.decide.backlog import Backlog
from haptera.core.decide.call_results import Answers
from haptera.core.decide.decide import Decisions, Hands
from haptera.core.modules.catalog import Catalog
from haptera.core.state.entity.decision import Decision
from haptera.core.state.related import related_to
from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.core.sync.neighbours import Neighbours
from haptera.core.views.news import decides_news
from haptera.model.answers.views import Condition
from haptera.model.entity import EntityId

# How often one entity may be decided on again within a turn.
ROUNDS_MAX: Final = 16

# What deciding on an entity and telling of it costs, in moves that a search could try.
DECIDING: Final = 800


@dataclass(frozen=True, slots=True)
class DecisionLoop:
    """Decides on entities again and again, until deciding itself changes nothing any more."""

    table: EntityTable
    catalog: Catalog
    answers: Answers
    hands: Hands
    agents: Agents
    decisions: Decisions
    neighbours: Neighbours

    @property
    def backlog(self) -> Backlog:
        return self.decisions.backlog

    def decide(self, turn: Turn) -> None:
        """First the longest waits and the entities with events; then those that were put off.

        While there is time: all others wait for the next turns.
        """
        turn.dirty |= self.answers.calls.slots.take_woken()
        fresh, turn.dirty = turn.dirty, set(self.backlog.oldest())
        if turn.dirty:
            self._decide(turn)
        turn.dirty |= fresh
        self._decide(turn)
        while turn.allowance.has_time and (entity := self.backlog.next()) is not None:
            turn.dirty.add(entity)
            self._decide(turn)

    def wake(self, turn: Turn, what: str, entity: EntityId) -> None:
        """Its time has come: what is at rest is only looked at again, all else is decided on."""
        row = self.table.get(entity)
        rests = what == "look" and row is not None and not self.backlog.is_overdue(entity)
        if row is None or not rests or not self._refreshed(turn, row):
            turn.dirty.add(entity)

    def _refreshed(self, turn: Turn, row: EntityState) -> bool:
        return self.hands.looks.refresh(turn, row, self.table.node_of(row))

    def _decide(self, turn: Turn) -> None:
        """Nodes before what is on them; again where deciding itself changed something."""
        self.hands.freezes.follow(turn)
        self.hands.policies.follow(turn)
        for _ in range(ROUNDS_MAX):
            self.hands.supervisor.dismiss(turn, self.answers.calls)
            if turn.all_due:
                turn.all_due = False
                self.backlog.sweep(self.table)
            if not turn.dirty:
                return
            batch, turn.dirty = turn.dirty, set()
            for entity in sorted(batch, key=lambda one: (one.kind != "node", str(one))):
                self._decide_on(turn, entity)
        raise AssertionError(f"no rest for {sorted(turn.dirty, key=str)}")

    def _decide_on(self, turn: Turn, entity: EntityId) -> None:
        """Decide on one entity, or put it off where this turn has no time for it."""
        row = self.table.get(entity)
        if row is None:
            self.backlog.drop(turn, entity)
        elif self.hands.supervisor.runs(entity):
            self.backlog.drop(turn, entity)
            self.hands.supervisor.decide(turn, row)
        elif row.work.stepping is None and not self.neighbours.keeps(entity.node):
            self.backlog.drop(turn, entity)
            self._leave(turn, row)
        elif not self._has_time_for(turn, row):
            self.backlog.put_off(turn, row)
            return
        else:
            self.backlog.remove(turn, entity)
            turn.allowance.spend(DECIDING)
            self.answers.give_up(turn, row)
            turn.dirty.discard(entity)
            self.hands.acts.take_up(row, turn.now)
            assessed = self.agents.settle(turn, row) if row.kind.name == "node" else None
            self.decisions.decide(turn, row, assessed)
            if row.desired.leaving and row.stance.condition is Condition.CONVERGED:
                self.neighbours.forget(entity)
        if row is not None and decides_news(row):
            turn.changed.add(entity)

    def _leave(self, turn: Turn, row: EntityState) -> None:
        """Another parent keeps its node: nothing is looked at here, or asked for."""
        reports = self.neighbours.reports
        if row.work.looks:
            self.hands.looks.retire(turn, row)
            row.work.unschedule_all()
            if reports is not None:
                reports.forget(turn, row)
        self.hands.searches.release(row.id)
        held = self.hands.safety.kept(row)
        self.hands.safety.claims.reconcile(turn, row, Decision(row.stance.verdict, claims=held))
        self.decisions.freeze(turn, row)
        if row.kind.name == "node":
            self.neighbours.part(row.id.name)
        if reports is not None:
            reports.adopt_status(turn, row)

    def _has_time_for(self, turn: Turn, row: EntityState) -> bool:
        """True if there is time to decide on it now, after the entities that it depends on."""
        if not turn.allowance.has_time:
            return False
        node = self.table.node_of(row)
        lenders = [] if node is None or node is row else [node.id]
        lenders += [one for _, one in related_to(row, node) if one is not None]
        for lender in lenders:
            if self.backlog.is_overdue(lender):
                self._decide_on(turn, lender)
                if self.backlog.is_overdue(lender):
                    return False
        allowance = turn.allowance
        return allowance.has_time and self.catalog.has_compiled(row, node, allowance)
