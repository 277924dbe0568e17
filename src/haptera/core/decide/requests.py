"""Requests of people beside desired state: carried out here, or handed down to the parent below."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, assert_never

from haptera.core.decide.plan_queue import PlanQueue
from haptera.core.modules.catalog import Catalog
from haptera.core.safety.safety import Safety
from haptera.core.state.limits import MS, S
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.neighbours import Neighbours
from haptera.core.sync.parents import STANDS_H, asked_of
from haptera.model.effects import RequestRetry
from haptera.model.entity import EntityId
from haptera.model.events import Asked, HandedDown, Released, ReportAnswer, ToldFromAbove
from haptera.model.messages import ReportNotes

KEY: Final = ("requests",)


@dataclass(frozen=True, slots=True)
class Requests:
    """Takes requests in, of people and of the parent above; has notes and answers of reports."""

    side: Side
    timers: Timers
    table: EntityTable
    catalog: Catalog
    neighbours: Neighbours
    safety: Safety
    searches: PlanQueue

    def handle(self, turn: Turn, event: HandedDown) -> None:
        """A person asks: the parent that keeps the node does it."""
        self._take(turn, event, turn.now + STANDS_H * self.side.hello_ns)

    def take_up(self, asked: Iterable[tuple[HandedDown, float]], now: int) -> None:
        """What people asked of an earlier process, so many seconds ago, may not be heeded yet."""
        down = self.neighbours.down
        assert down is not None, "nobody asks an agent so"
        for request, age_s in dict(asked).items():  # each once, as it was last asked
            until = now + STANDS_H * self.side.hello_ns - int(age_s * S)
            if asked_of(request) is None:
                for level in down.charge.levels()[:1]:
                    down.below.hand_to_all(sorted(level), request, until)
            else:
                down.below.hand_down(None, request, until)
            self.timers.set(KEY, now)

    def advance(self, turn: Turn) -> None:
        """Have the parent that keeps the node by now do what nobody has heeded yet."""
        down = self.neighbours.down
        assert down is not None, "nobody is below an agent"
        standing = down.below.standing(turn.now)
        for parent, request, until in standing:
            node = asked_of(request)
            if node is None:
                continue
            if self.neighbours.keeps(node):
                down.below.drop(request)
                self._do(turn, request)
            elif (now_by := down.reports.subtree(node)) != parent:
                down.below.hand_down(now_by, request, until)
        if standing:
            self.timers.set(KEY, turn.now + self.side.hello_ns)

    def out_of_reach(self, node: str) -> str | None:
        """The parent below that would have to do what is asked of a node, where it is silent."""
        down = self.neighbours.down
        parent = None if down is None else down.reports.subtree(node)
        if down is None or parent is None:
            return None
        if not down.below.reports(parent):
            return parent
        return None if down.reports.hears(node) is not None else down.charge.listed(node)[0]

    def told_from_above(self, turn: Turn, event: ToldFromAbove) -> None:
        """The parent above has answered a report."""
        assert self.neighbours.down is not None, "nobody answers an agent so"
        for one in self.neighbours.down.above.receive(event):
            self._take(turn, one.request, turn.now + one.left_ms * MS)
        turn.dirty.update(self.safety.exchange.asks.entities())

    def notes(self, now: int) -> ReportNotes:
        """On a parent below another: what its next report says beside what is seen."""
        assert self.neighbours.down is not None, "an agent reports nothing so"
        exchange, down = self.safety.exchange, self.neighbours.down
        asks, unsure = exchange.asks.standing(), exchange.unsure(now)
        return down.above.notes(asks, unsure, down.below.stands)

    def answer(self, parent: str, now: int) -> ReportAnswer:
        """What is said to the last report of a parent below."""
        assert self.neighbours.down is not None, "nobody reports to an agent"
        permits = self.safety.exchange.subtrees.permits(parent)
        return self.neighbours.down.below.answer(parent, permits, now)

    def _take(self, turn: Turn, request: HandedDown, until: int) -> None:
        node = asked_of(request)
        if node is None or not self.neighbours.keeps(node):
            self._hand_down(turn, request, until)
        if self.neighbours.keeps(node):
            self._do(turn, request)

    def _do(self, turn: Turn, request: HandedDown) -> None:
        match request:
            case Asked(entity):
                self._try_again(turn, entity)
            case Released(node):
                self.safety.release(turn, node)
            case _:
                assert_never(request)

    def _try_again(self, turn: Turn, entity: EntityId) -> None:
        if (row := self.table.get(entity)) is not None:
            row.relent()
            self.searches.relent(self.catalog.domain(row, self.table.node_of(row)))
            row.work.hurry()
            turn.dirty.add(entity)
            node = entity.node if self.neighbours.down is not None else None
            if node is not None and self.neighbours.peer(node) is not None:
                turn.effects.append(RequestRetry(node, entity))

    def _hand_down(self, turn: Turn, request: HandedDown, until: int) -> None:
        down, node = self.neighbours.down, asked_of(request)
        if down is None:
            return
        if node is None:
            down.below.hand_to_all(down.below.there(), request, until)
        else:
            down.below.hand_down(down.reports.subtree(node), request, until)
        self.timers.soonest(KEY, turn.now + self.side.hello_ns)
