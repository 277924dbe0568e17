"""The claims of disruptive steps: taken before they begin, given back after their outcome."""

from haptera.core.act.act import StepRunner, first_step
from haptera.core.safety.budget_rules import BudgetRules, group_of
from haptera.core.safety.budgets import Budgets
from haptera.core.safety.exchange import ClaimExchange
from haptera.core.safety.pace import Pace
from haptera.core.safety.unrest import Unrest
from haptera.core.state.entity.decision import (
    Assent,
    Awaited,
    Awaits,
    ClaimKind,
    Decision,
    Delay,
    Denial,
    Wait,
)
from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.kinds.rules.budget import Per
from haptera.model.entity import EntityId
from haptera.model.intent import Intent
from haptera.model.parts import Step


class Claims:
    """Has an entity hold exactly what its decision claims; a step, until its outcome is known."""

    def __init__(
        self,
        table: EntityTable,
        rules: BudgetRules,
        budgets: Budgets,
        unrest: Unrest,
        exchange: ClaimExchange,
        acts: StepRunner,
    ) -> None:
        self._table = table
        self._rules = rules
        self._budgets = budgets
        self._unrest = unrest
        self._exchange = exchange
        self._asks, self._permits = exchange.asks, exchange.permits
        self._acts = acts
        self._pace = Pace()
        # Who waits for an agent to be heard, by node.
        self._silent_ones: dict[str, dict[EntityId, None]] = {}
        # Who may hold or wait for something here: of all others there is nothing to give back.
        self._holders: set[EntityId] = set()
        # Whose place and permit were used: the next step on them needs its own.
        self._spent: set[EntityId] = set()

    def holds(self, entity: EntityId) -> bool:
        """True of an entity that may hold or wait for something here."""
        return entity in self._holders

    def turn_to_boot(self, row: EntityState, now: int) -> Assent | Delay:
        """The answer to a claim of a turn to boot."""
        return self._pace.answer(now, row.id, group_of(self._table.node_of(row)))

    def renew(self, turn: Turn, row: EntityState) -> None:
        """A disruptive step comes next: place and permit of the one before it are given back."""
        self._discount(turn, row)
        if row.work.stepping is None and row.id in self._spent:
            self.leave(turn, row.id)

    def reconcile(self, turn: Turn, row: EntityState, decision: Decision) -> None:
        """Have the entity hold exactly what its decision claims, and note what it waits for."""
        row.asking = None
        self._discount(turn, row)
        claimed = {one.kind for one in decision.claims}
        if ClaimKind.BOOT in claimed:
            self._pace.claim(turn.now, row.id, group_of(self._table.node_of(row)))
        disrupts = _disrupts(row)
        if row.work.stepping is None or not (disrupts and row.work.stepping.begun):
            self._hold(turn, row, claimed)
        if isinstance(decision.next, Wait) and decision.next.on is not None:
            self._note(row, decision.next.on, turn.now)
        if not disrupts:
            self._exchange.reconcile(turn, row.id)

    def begins(self, row: EntityState, intent: Intent) -> None:
        """Its module is called."""
        self._spent.add(row.id)
        self._asks.begins(row.id)
        self._budgets.begin(row.id, self._rules.where(row.id), intent.began_at)

    def takes_up(self, turn: Turn, intent: Intent, step: Step) -> None:
        """This step may have begun in an earlier process: it has its place, and asks on."""
        self._budgets.grant(intent.entity, self._rules.where(intent.entity))
        self._spent.add(intent.entity)
        self._holders.add(intent.entity)
        if intent.entity.node is not None:
            ask = self._permits.ask_for(intent.entity, intent.id, step)
            if Per.SERVICE not in self._rules.where(intent.entity):
                self._permits.put(turn, intent.entity, ask)
            self._asks.takes_up(intent.id, intent.entity, ask.late_ms)

    def heard(self, turn: Turn, node: str) -> None:
        """This neighbour is there: who waits to ask it goes on."""
        turn.dirty.update(self._silent_ones.pop(node, ()))
        turn.dirty.update(self._permits.entities(node))
        turn.dirty.update(self._asks.entities())

    def leave(self, turn: Turn, entity: EntityId) -> None:
        """Nothing disruptive is under way on this entity, or meant."""
        if not self._exchange.loans.asked(entity):
            self._budgets.leave(turn, entity)
        if not self._budgets.holds(entity):
            self._asks.leave(entity)
        self._spent.discard(entity)
        self._holders.discard(entity)
        self._permits.leave(turn, entity)

    def check(self) -> None:
        """Assert that no entity holds what its last decision does not name."""
        held = [(one, ClaimKind.BUDGET) for one in self._budgets.held_here()]
        held += [(one, ClaimKind.PERMIT) for one in self._permits.asking()]
        for entity, kind in held:
            row = self._table.get(entity)
            decision = None if row is None else row.stance.decision
            if row is not None and decision is not None and row.work.stepping is None:
                assert decision.claim(kind) is not None, (entity, kind, decision)

    def _discount(self, turn: Turn, row: EntityState) -> None:
        """Count its last step in no hour, here and above, once it is known to be harmless."""
        last = row.work.harmless
        if last is None:
            return
        if last.past is not None:
            if not self._exchange.lived_on(row.id.name, last.past):
                return
            self._acts.close(turn, last.intent, begun=False)
        row.work.discounted()
        self._budgets.take_back(row.id, self._rules.where(row.id), last.intent.began_at)
        self._asks.discount(row.id)

    def _hold(self, turn: Turn, row: EntityState, claimed: set[ClaimKind]) -> None:
        if ClaimKind.BUDGET not in claimed:
            if row.id in self._holders and not _disrupts(row):
                self.leave(turn, row.id)
            return
        self._holders.add(row.id)
        step = first_step(row) if row.work.stepping is None else row.work.stepping.step
        self._budgets.hold(row.id, self._rules.where(row.id), turn.now)
        if ClaimKind.BUDGET_ABOVE in claimed and step is not None:
            self._asks.claim(row.id, self._permits.ask_for(row.id, "", step).late_ms)
        if ClaimKind.PERMIT in claimed and step is not None:
            row.asking = self._permits.claim(turn, row, step, self._acts.next_id)
        elif row.id.node is not None:
            self._permits.put(turn, row.id, None)

    def _note(self, row: EntityState, on: Awaits, now: int) -> None:
        """Note what ends its wait, and since when."""
        match on:
            case Awaited.AGENT:
                self._silent_ones.setdefault(str(row.id.node), {})[row.id] = None
            case Awaited.BRAKE:
                self._unrest.awaited_by(row.id)
            case Denial() | Awaited.PERMIT:
                self._permits.note(row, on, now)
            case _:
                pass


def _disrupts(row: EntityState) -> bool:
    """True while a disruptive step is under way on it."""
    return row.work.stepping is not None and row.work.stepping.step.disruptive
