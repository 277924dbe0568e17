"""What people ask beside what they desire: done here, or handed down to who keeps the node."""

from dataclasses import dataclass
from typing import assert_never

from haptera.core.decide.plan_queue import PlanQueue
from haptera.core.modules.catalog import Catalog
from haptera.core.safety.safety import Safety
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.core.sync.neighbours import Neighbours
from haptera.model.effects import RequestRetry
from haptera.model.entity import EntityId
from haptera.model.events import Asked, HandedDown, Released, ReportAnswer, ToldFromAbove
from haptera.model.messages import ReportNotes


@dataclass(frozen=True, slots=True)
class Requests:
    """Takes requests in, of people and of the parent above; has notes and answers of reports."""

    table: EntityTable
    catalog: Catalog
    neighbours: Neighbours
    safety: Safety
    searches: PlanQueue

    def take(self, turn: Turn, event: HandedDown) -> None:
        """A person asks: whoever keeps the node does it."""
        match event:
            case Asked(entity):
                if entity.node is None or not self._hand_down(event, entity.node):
                    self._try_again(turn, entity)
            case Released(node):
                if node is None:
                    self._hand_to_all(event)
                if node is None or not self._hand_down(event, node):
                    self.safety.release(turn, node)
            case _:
                assert_never(event)

    def out_of_reach(self, node: str) -> str | None:
        """The parent below that would have to do what is asked of a node, where it is silent."""
        down = self.neighbours.down
        parent = None if down is None else down.reports.subtree(node)
        return None if down is None or parent is None or down.below.reports(parent) else parent

    def told_from_above(self, turn: Turn, event: ToldFromAbove) -> None:
        """The parent above has answered a report."""
        assert self.neighbours.down is not None, "nobody answers an agent so"
        for request in self.neighbours.down.above.take(event):
            self.take(turn, request)
        turn.dirty.update(self.safety.asks.entities())

    def notes(self, now: int) -> ReportNotes:
        """On a parent below another: what its next report says beside what is seen."""
        assert self.neighbours.down is not None, "an agent reports nothing so"
        asks, unsure = self.safety.asks.standing(), self.safety.unsure(now)
        return self.neighbours.down.above.notes(asks, unsure)

    def answer(self, parent: str) -> ReportAnswer:
        """What is said to the last report of a parent below."""
        assert self.neighbours.down is not None, "nobody reports to an agent"
        return self.neighbours.down.below.answer(parent, self.safety.subtrees.permits(parent))

    def _try_again(self, turn: Turn, entity: EntityId) -> None:
        if (row := self.table.get(entity)) is not None:
            row.relent()
            self.searches.relent(self.catalog.domain(row, self.table.node_of(row)))
            row.work.hurry()
            turn.dirty.add(entity)
            node = entity.node if self.neighbours.down is not None else None
            if node is not None and self.neighbours.peer(node) is not None:
                turn.effects.append(RequestRetry(node, entity))

    def _hand_down(self, request: HandedDown, node: str) -> bool:
        """Tells whether it is for another parent to do."""
        down = self.neighbours.down
        if down is None or self.neighbours.keeps(node):
            return False
        parent = down.reports.subtree(node)
        if parent is not None:
            down.below.hand_down(parent, request)
        return True

    def _hand_to_all(self, request: HandedDown) -> None:
        if self.neighbours.down is not None:
            self.neighbours.down.below.hand_to_all(request)
