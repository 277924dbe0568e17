"""The loop: what happened becomes state, the state a plan, the plan what is to be done now."""

from collections.abc import Iterable
from itertools import islice
from typing import assert_never

from haptera.core.act.act import StepRunner
from haptera.core.act.contradiction import ReadingConflicts
from haptera.core.act.look import LookScheduler
from haptera.core.act.reported import ReportedReadings
from haptera.core.decide.agents import Agents
from haptera.core.decide.call_results import Answers
from haptera.core.decide.decide import Decisions, Hands
from haptera.core.decide.decision_loop import DecisionLoop
from haptera.core.decide.lending import touch_dependent
from haptera.core.decide.plan_queue import PlanQueue
from haptera.core.decide.requests import Requests
from haptera.core.desired.freezes import Freezes
from haptera.core.desired.policies import Policies
from haptera.core.desired.proposals import Proposals
from haptera.core.modules.calls import Calls
from haptera.core.modules.catalog import Catalog
from haptera.core.modules.supervise import Supervisor
from haptera.core.modules.takeover import Takeover
from haptera.core.preview.grouping import PreviewContext
from haptera.core.preview.preview import Previews
from haptera.core.safety.evidence import Evidence
from haptera.core.safety.node_gates import NodeGates
from haptera.core.safety.permits import Permits
from haptera.core.safety.safety import Safety
from haptera.core.state.intake import taking
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import WOKEN_MAX, Key, Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.neighbours import Neighbours
from haptera.core.sync.presence import had_enrolled
from haptera.core.views.news import publish
from haptera.kinds.rules import budget
from haptera.model.changes import Stored
from haptera.model.effects import Effect
from haptera.model.entity import EntityId, node_id
from haptera.model.events import (
    Alive,
    Answered,
    Asked,
    Considered,
    Ended,
    Enrolled,
    Event,
    Exited,
    Failed,
    Heard,
    Learnt,
    Listed,
    LoopBlocked,
    Noticed,
    PlanFailed,
    PlanFound,
    Progressed,
    Proposed,
    ReadingReported,
    Ready,
    Recalled,
    Released,
    Reported,
    Silenced,
    Ticked,
    ToldFromAbove,
    Unwritten,
    WallClockSet,
    WatchReported,
    Written,
)
from haptera.model.intent import Intent
from haptera.model.parts import Context


class Engine:
    """One side's whole knowledge and will. Pure: events and the time in, effects out.

    `handle` takes all that happened since the last call, in order; `deadline` says when to call
    it again with a `Ticked` if nothing happens before.
    """

    def __init__(self, side: Side, catalog: Catalog, stored: Stored, schema: int, now: int) -> None:
        self.side, self.catalog, self._begin = side, catalog, Turn(now)
        self.table = table = _table(side, catalog)
        self.timers = timers = Timers()
        here = catalog.looked_at(side.context)
        # What is said to neighbours depends on what they said, so that it is made after them.
        self.neighbours = near = Neighbours(
            *(side, table, timers, here, stored.epoch, schema),
            lambda node: self.safety.exchange.spoken(node),
        )
        supervisor = Supervisor(catalog, side, table, timers)
        calls = Calls(timers, catalog, supervisor.process)
        policies = Policies(table, catalog)
        self.proposals = proposals = Proposals(table, catalog, policies)
        looks = LookScheduler(
            *(side, timers, calls, supervisor, policies), near.incarnation, near.usual
        )
        acts = StepRunner(side, timers, calls, looks, policies, proposals.ticket)
        contests = ReadingConflicts(side, timers, looks, near.probe)
        reported = ReportedReadings(side, table, catalog, near, looks)
        freezes = Freezes(side, table, timers, proposals)
        gates = NodeGates(side, catalog, timers, calls, supervisor, table)
        permits = Permits(side, near.peer, gates, policies)
        evidence = Evidence(side, looks, catalog)
        self.safety = safety = Safety(side, table, timers, evidence, permits, near, acts)
        searches = PlanQueue(side, timers)
        self.requests = Requests(side, timers, table, catalog, near, safety, searches)
        self.hands = hands = Hands(
            supervisor, calls, looks, acts, contests, freezes, policies, safety, searches
        )
        decisions = Decisions(side, catalog, table, timers, near, hands)
        self.answers = answers = Answers(table, hands, reported)
        self.agents = agents = Agents(side, near, decisions, contests, safety, catalog)
        self.rounds = DecisionLoop(table, catalog, answers, hands, agents, decisions, near)
        said = safety.unrest.braked, safety.rounds, safety.needs_a_person
        grounds = PreviewContext(table, catalog, near.usual, freezes, *said)
        self.previews = Previews(grounds, proposals, searches, timers)
        self.takeover = Takeover(side, catalog, table, supervisor, near, calls, here)
        self._load(stored, now)

    def handle(self, batch: Iterable[Event], now: int) -> list[Effect]:
        """Take in what happened; returns all that is to be done about it, in order."""
        turn, self._begin = self._begin, Turn(now)
        turn.begin(now)
        self.neighbours.forgive_pause(now)
        self.proposals.checks.advance(turn)
        for event in batch:
            turn.allowance.spend(taking(event))
            self._take(turn, event)
            self._retire(turn)
        if self.proposals.waits:
            self._take_over(turn)
            self._retire(turn)
        for key in islice(self.timers.due(now), WOKEN_MAX):
            self._wake(turn, key)
        if self.takeover.waits:
            self.takeover.advance(turn)
            self.safety.permits.gates.reconcile(turn)
        self._decide_all(turn)
        self._retire(turn)
        self.previews.advance(turn)
        self.hands.searches.advance(turn)
        self.safety.exchange.tell(turn)
        if (news := publish(self.table, turn.changed)) is not None:
            turn.effects.append(news)
        return turn.effects

    def deadline(self) -> int | None:
        """When to call next, if nothing happens before; None: not at all."""
        return self.timers.next()

    def check(self) -> None:
        """Assert what must hold between any two calls."""
        for row in self.table:
            assert not row.belief.known.keys() & row.belief.remembered.keys(), row.id
            if row.work.stepping is not None and row.work.stepping.call is not None:
                called = row.work.stepping.call
                assert self.hands.calls.get(called) or self.hands.calls.lost(called), row.id
            if row.work.stepping is not None:
                assert self.side.runs(row.work.stepping.step), row.id
        self.safety.claims.check()
        self.hands.calls.check()
        self.hands.supervisor.check()
        self.hands.searches.check()

    def _load(self, stored: Stored, now: int) -> None:
        self.table.revision = stored.revision
        for entity in stored.entities:
            self._begin.mark_desired(self.table.load(entity).id)
        for intent in stored.intents:
            step = self.catalog.step(intent.module, intent.step)
            if step is None:
                self.hands.acts.close(self._begin, intent)
            else:
                self.hands.acts.load(self._begin, intent, step)
                if step.disruptive:
                    self.safety.claims.takes_up(self._begin, intent, step)
        for disruption in stored.disruptions:
            self.safety.remember(disruption, now)
        for row in self.table:
            self.hands.acts.take_up(row, now)
        had_enrolled(self.table, stored.enrolled)
        self.neighbours.load(stored.incarnations, now)
        self.safety.exchange.recall(stored.incarnations, self.catalog.late_ms, now)
        if self.side.node is not None:
            self._begin.touch(self.table.make(node_id(self.side.node)).id)
        self._begin.dirty.update(row.id for row in self.table if row.desired.resident)
        for name in self.catalog.from_the_start():
            self.hands.supervisor.need(self._begin, name)
        # Before anything happens: which modules are needed, and so started, is known by now, unless
        # there is more to decide on than there is time for.
        self._decide_all(self._begin)

    # One branch an event.
    def _take(self, turn: Turn, event: Event) -> None:  # noqa: C901, PLR0912, PLR0915
        match event:
            case Heard():
                self._heard(turn, event)
            case Alive() | Learnt() | Listed() | Recalled():
                self.neighbours.handle(turn, event)
                self.safety.exchange.heed(turn)
            case Answered() | Ended() | Failed():
                self.answers.handle(turn, event)
            case WatchReported() | Progressed():
                self.answers.sighted(turn, event)
            case Proposed():
                self.proposals.propose(turn, event)
            case Considered():
                self.previews.consider(turn, event)
            case Written() | Unwritten():
                self._stored(turn, event)
            case Ready():
                self.takeover.ready(turn, event)
                self.safety.permits.gates.reconcile(turn)
            case LoopBlocked() | Exited():
                self._failing(turn, event)
            case PlanFound() | PlanFailed():
                self.hands.searches.handle(turn, event)
            case Enrolled() | Noticed() | ReadingReported():
                self._from_elsewhere(turn, event)
            case Asked() | Released():
                self.requests.handle(turn, event)
            case Reported() | Silenced():
                self.neighbours.report(turn, event)
                self.safety.exchange.subtrees.reconcile(turn, event.parent)
            case ToldFromAbove():
                self.requests.told_from_above(turn, event)
            case WallClockSet(wall_offset_ns):
                self.hands.freezes.set_clock(wall_offset_ns)
            case Ticked():
                pass
            case _:
                assert_never(event)

    def _from_elsewhere(self, turn: Turn, event: Enrolled | Noticed | ReadingReported) -> None:
        """A node has enrolled, the queue says whether nodes take jobs, or others report."""
        match event:
            case ReadingReported():
                self.answers.reported.receive(turn, event)
            case Enrolled(peer, incarnation):
                self.neighbours.enrolled(turn, peer, incarnation)
            case Noticed(nodes):
                for name, value in nodes.items():
                    if (row := self.table.get(node_id(name))) is not None:
                        self.agents.noticed(turn, row, value)

    def _failing(self, turn: Turn, event: LoopBlocked | Exited) -> None:
        """A process of a module is gone, or serves nobody for a while."""
        match event:
            case LoopBlocked():
                self.hands.supervisor.blocked_loop(turn, event)
            case Exited(module, text, process):
                self.answers.lose(turn, module, process, text)
                self.hands.supervisor.exited(turn, event)

    def _heard(self, turn: Turn, event: Heard) -> None:
        links = self.neighbours.links
        agreed = links.agrees(event.peer)
        self.neighbours.heard(turn, event)
        self.agents.measured(event.peer, event.message.measures)
        self.safety.exchange.heed(turn)
        self.safety.claims.heard(turn, event.peer)
        if self.side.node is None:
            self.safety.exchange.loans.reconcile(turn, event.peer)
        if links.agrees(event.peer) != agreed:
            node = event.peer if self.side.node is None else self.side.node
            turn.dirty.update(row.id for row in self.table.on(node))

    def _retire(self, turn: Turn) -> None:
        """End what is under way on what is gone, before a later event is taken for its answer."""
        for row in self.table.take_removed():
            self.hands.looks.retire(turn, row)
            self.hands.searches.release(row.id)
            self.hands.acts.retire(turn, row)
            if not self.hands.acts.left(row.id):
                self.safety.claims.leave(turn, row.id)
            touch_dependent(turn, self.table, row, self.catalog)

    # One branch a sort of key.
    def _wake(self, turn: Turn, key: Key) -> None:  # noqa: C901, PLR0912
        match key:
            case ("hello" | "greet" | "tell" | "list" | "schema" as what, str(name)):
                self.neighbours.links.wake(turn, what, name)
            case ("tier", str(name)):
                self.neighbours.links.check_tier(turn, name)
                self.safety.exchange.heed(turn)
            case ("call", int(call)):
                self.answers.expire(turn, call)
            case ("freeze", EntityId() as entity):
                self.hands.freezes.end(turn, entity)
            case ("left", EntityId() as entity):
                self.hands.acts.give_up(turn, entity)
                self.safety.claims.leave(turn, entity)
            case ("room", str(name)):
                self.safety.exchange.loans.reconcile(turn, name)
            case ("subtree", str(name)):
                self.safety.exchange.subtrees.reconcile(turn, name)
            case ("gate",):
                self.safety.permits.gates.reconcile(turn)
            case ("requests",):
                self.requests.advance(turn)
            case ("search",):
                self.hands.searches.wake(turn)
            case ("preview", int()) | ("late",) | ("takeover",):
                pass  # What they are for is looked after in each turn.
            case ("look" | "decide" as what, EntityId() as entity):
                self.rounds.wake(turn, what, entity)
            case _:
                raise AssertionError(key)

    def _stored(self, turn: Turn, event: Written | Unwritten) -> None:
        """A write is done or refused: an intent's entity goes on, or a proposal is answered."""
        row = self._stepping(self.proposals.take_intent(event.ticket))
        match event:
            case Written() if row is not None:
                self.hands.acts.written(row)
                turn.dirty.add(row.id)
            case Written(ticket, revision):
                if self.proposals.written(ticket, revision):
                    self._take_over(turn)
            case Unwritten(_, text) if row is not None:
                self.hands.acts.unwritten(turn, row, text)
            case Unwritten():
                self.proposals.unwritten(turn, event)

    def _take_over(self, turn: Turn) -> None:
        """Go by what is durable from now on; much of it takes many turns."""
        for changed, number in self.proposals.take_over(turn):
            self.neighbours.stored(changed, number)
            turn.mark_desired(changed)
            if changed.kind == budget.kind.name:
                self.safety.rebudget(turn)

    def _stepping(self, intent: Intent | None) -> EntityState | None:
        """The row that has this intent; None where it is gone, or was made anew since."""
        row = None if intent is None else self.table.get(intent.entity)
        return row if row and row.work.stepping and row.work.stepping.intent is intent else None

    def _decide_all(self, turn: Turn) -> None:
        """The entities with events, then those that were put off, while there is time."""
        self.rounds.decide(turn)
        slots = self.hands.calls.slots
        waits = self.rounds.backlog.waits or self.proposals.waits or self.hands.policies.waits
        if waits or slots.has_woken:
            self.timers.set(("late",), turn.now)
        if self.takeover.waits:
            self.timers.set(("takeover",), turn.now)


def _table(side: Side, catalog: Catalog) -> EntityTable:
    """The empty table, with the modules that are there undeclared."""
    of_cluster = catalog.modules(Context.PARENT) if side.node is None else ()
    of_nodes = catalog.modules(Context.SELF)
    return EntityTable(catalog.kinds, of_cluster=of_cluster, of_nodes=of_nodes)
