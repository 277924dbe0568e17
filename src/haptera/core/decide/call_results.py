"""Results of calls, handed to the look or step that made the call."""

from typing import Final

from haptera.core.act.reported import ReportedReadings
from haptera.core.decide.decide import Hands
from haptera.core.modules.calls import Pending
from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.model.effects import Work
from haptera.model.events import Answered, Ended, Failed, Progressed, WatchReported
from haptera.model.walltime import span

GATE_WORK: Final = (Work.HOLD, Work.RELEASE)


class Answers:
    """Sorts answers by call; one to a call that is over is stale, and dropped.

    What programs outside haptera read answers no call: it is `reported`.
    """

    def __init__(self, table: EntityTable, hands: Hands, reported: ReportedReadings) -> None:
        self._table, self.reported = table, reported
        self.calls = hands.calls
        self._looks, self._acts, self._policies = hands.looks, hands.acts, hands.policies
        self._gates = hands.safety.permits.gates

    def sighted(self, turn: Turn, event: WatchReported | Progressed) -> None:
        """A watch goes on after what it reports, and a step after how far it is."""
        pending = self.calls.get(event.call)
        row = self._row(pending)
        if isinstance(event, Progressed):
            if row is not None:
                self._acts.progressed(turn, row, event)
        elif pending is not None and pending.work is Work.WATCH and row is not None:
            self._looks.sighted(turn, row, pending, event)

    def handle(self, turn: Turn, event: Answered | Ended | Failed) -> None:
        """A call is over."""
        pending = self.calls.finish(event.call)
        row = self._row(pending)
        if pending is None or row is None:
            return
        if pending.work in GATE_WORK:
            self._gated(turn, row, pending, event)
            return
        match event:
            case Answered() if pending.work is Work.LOOK:
                self._looks.answered(turn, row, pending, event)
            case Ended() if pending.work is Work.STEP:
                self._acts.ended(turn, row)
            case Failed(_, text, refused):
                self._failed(turn, row, pending, text, refused=refused)
            case _:
                self._failed(turn, row, pending, "ended without an answer", refused=False)

    def expire(self, turn: Turn, call: int) -> None:
        """The time for an answer is over."""
        if (lost := self.calls.lost(call)) is not None:
            turn.dirty.add(lost.entity)  # It is high time to give it up.
            return
        pending = self.calls.get(call)
        self.calls.cancel(turn, call)
        row = self._row(pending)
        if pending is None or row is None:
            return
        if pending.work is Work.STEP:
            self._acts.timed_out(turn, row, pending)
        elif pending.work in GATE_WORK:
            text = f"no answer within {span(pending.part.within_ms)}"
            self._gated(turn, row, pending, Failed(call, text))
        else:
            within_ms = self._policies.terms(row.id, pending.part).within_ms
            text = f"no answer within {span(within_ms)}"
            self._failed(turn, row, pending, text, refused=False)

    def lose(self, turn: Turn, module: str, process: int, text: str) -> None:
        """A module's process is gone, with all its calls; nodes are not blamed for it.

        They may be very many, so each is given up when its entity is next decided on, which all
        are at leisure. Until then it is as if it were under way still, but nothing answers it.
        """
        if self.calls.lose(module, process, text):
            turn.all_due = True
        self._gates.lost(module)

    def give_up(self, turn: Turn, row: EntityState) -> None:
        """Give up what an entity's looks and step were asked of processes that are gone."""
        if not self.calls.are_lost:
            return
        self._looks.give_up(row)
        call = None if row.work.stepping is None else row.work.stepping.call
        pending = None if call is None else self.calls.lost(call)
        if call is not None and pending is not None:
            text = f"module {pending.part.module} {self.calls.give_up(call)}"
            self._acts.failed(turn, row, text, refused=False)

    def _gated(
        self, turn: Turn, node: EntityState, pending: Pending, event: Answered | Ended | Failed
    ) -> None:
        """A gate of this node closed or opened, or did not: who waits for it may go on."""
        self._gates.answered(turn, pending, event)
        waiting = [row.id for row in self._table.on(node.id.node) if row.asking is not None]
        turn.dirty.update(waiting)

    def _failed(
        self, turn: Turn, row: EntityState, pending: Pending, text: str, *, refused: bool
    ) -> None:
        match pending.work:
            case Work.LOOK:
                self._looks.failed(turn, row, pending, text)
            case Work.WATCH:
                self._looks.watch_ended(turn, row, pending)
            case Work.STEP:
                self._acts.failed(turn, row, text, refused=refused)
            case Work.HOLD | Work.RELEASE:
                raise AssertionError(pending)  # gates are asked of no entity's parts
            case Work.SAMPLE:
                raise AssertionError(pending)  # the core asks for none

    def _row(self, pending: Pending | None) -> EntityState | None:
        return None if pending is None else self._table.get(pending.entity)
