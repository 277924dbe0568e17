"""The claims of disruptive steps: taken before they begin, given back after their outcome."""

from collections.abc import Callable, Iterable, Mapping

from haptera.core.act.act import first_step
from haptera.core.modules.gates import recovers
from haptera.core.safety.budget_rules import BudgetRules, group_of
from haptera.core.safety.budgets import Budgets
from haptera.core.safety.conditions import (
    Checked,
    Conditions,
    ConditionSources,
    DisruptiveCase,
    PermitNotes,
)
from haptera.core.safety.evidence import Evidence
from haptera.core.safety.gate import HEEDS_H
from haptera.core.safety.pace import Pace
from haptera.core.safety.permits import Permits
from haptera.core.safety.predecessor import Predecessor
from haptera.core.safety.room import LEVEL_H, Lender, RoomAsks, RoomLoans, Untold
from haptera.core.safety.unrest import Unrest
from haptera.core.state.entity.decision import (
    Awaited,
    Awaits,
    ClaimKind,
    Decision,
    EntityClaim,
    Lacking,
    PermitRefused,
    Wait,
)
from haptera.core.state.limits import MS, OVERRIDE_NS
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.neighbours import Neighbours
from haptera.core.sync.presence import may_boot
from haptera.kinds.rules.budget import Per
from haptera.model.changes import Disruption
from haptera.model.entity import EntityId
from haptera.model.intent import Intent
from haptera.model.parts import Context, Step
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.pieces import Pieces


class Safety:
    """Brake, evidence, budget and permit of each disruptive step.

    `check` reads what is lacking, and changes nothing; `reconcile` has an entity hold exactly what
    its decision claims. A step holds its claims until its outcome is known.
    """

    def __init__(
        self,
        side: Side,
        table: EntityTable,
        timers: Timers,
        evidence: Evidence,
        permits: Permits,
        near: Neighbours,
        next_id: Callable[[], str],
    ) -> None:
        self._side = side
        self._table = table
        self._permits = permits
        self._rules = rules = BudgetRules(table)
        self._budgets = Budgets(rules.size, rules.declared, rules.instances, rules.away)
        self.asks = RoomAsks(side, near.room_permits, next_id)
        self._untold = Untold()
        lender = Lender(side, timers, self._budgets, rules.where, self.asks, self._untold)
        self.loans = RoomLoans(lender, near.peer, permits)
        self.subtrees = RoomLoans(lender, near.parent_below, None)
        self.unrest = Unrest(rules.size)
        self._pace = Pace()
        self.predecessor = Predecessor()
        self._near, self._peer = near, near.peer
        self._next_id = next_id
        self._notes = PermitNotes()
        # Who waits for an agent to be heard, by node.
        self._silent_ones: dict[str, dict[EntityId, None]] = {}
        # Who may hold or wait for something here: of all others there is nothing to give back.
        self._holders: set[EntityId] = set()
        # Whose place and permit were used: the next step on them needs its own.
        self._spent: set[EntityId] = set()
        sources = ConditionSources(
            side, near.peer, self.predecessor, self.unrest, evidence,
            rules, self._budgets, self.asks, permits, self._notes,
        )  # fmt: skip
        self._conditions = Conditions(sources)

    def check(self, row: EntityState, domain: Domain, step: Step, now: int) -> Checked:
        """The obstacle to this disruptive step now, and its claims meanwhile."""
        node = self._table.node_of(row)
        if node is None and (row.kind.serves is None or not row.kind.of_cluster):
            return Checked(Lacking("it is on no node that could permit it: no-permit"))
        asked = () if node is None else self._conditions.asked_for(node, now)
        return self._conditions.check(DisruptiveCase(row, node or row, step, domain, asked, now))

    def holds(self, entity: EntityId) -> bool:
        """True of an entity that may hold or wait for something here."""
        return entity in self._holders

    def kept(self, row: EntityState) -> tuple[EntityClaim, ...]:
        """The claims that it holds and goes on holding, whatever comes next."""
        return self._conditions.kept(row)

    def boots_at(self, row: EntityState, now: int) -> int:
        """The time of this one's turn to boot."""
        return self._pace.turn_at(now, row.id, group_of(self._table.node_of(row)))

    def renew(self, turn: Turn, row: EntityState) -> None:
        """A disruptive step comes next: place and permit of the one before it are given back."""
        if row.work.stepping is None and row.id in self._spent:
            self.leave(turn, row.id)

    def reconcile(self, turn: Turn, row: EntityState, decision: Decision) -> None:
        """Have the entity hold exactly what its decision claims, and note what it waits for."""
        row.asking = None
        if row.work.refused is not None:
            self._budgets.take_back(row.id, self._rules.where(row.id), row.work.refused)
        claimed = {one.kind for one in decision.claims}
        if ClaimKind.BOOT in claimed:
            self._pace.claim(turn.now, row.id, group_of(self._table.node_of(row)))
        disrupts = _disrupts(row)
        if row.work.stepping is None or not (disrupts and row.work.stepping.begun):
            self._hold(turn, row, claimed)
        if isinstance(decision.next, Wait) and decision.next.on is not None:
            self._note(row, decision.next.on, turn.now)
        if disrupts:
            return
        if self.loans.asked(row.id):
            self.loans.reconcile(turn, str(row.id.node))
        for parent in self.subtrees.askers(row.id):
            self.subtrees.reconcile(turn, parent)

    def _hold(self, turn: Turn, row: EntityState, claimed: set[ClaimKind]) -> None:
        if ClaimKind.BUDGET not in claimed:
            if row.id in self._holders and not _disrupts(row):
                self.leave(turn, row.id)
            return
        self._holders.add(row.id)
        step = first_step(row) if row.work.stepping is None else row.work.stepping.step
        self._budgets.hold(row.id, self._rules.where(row.id), turn.now)
        if ClaimKind.BUDGET_ABOVE in claimed and step is not None:
            self.asks.claim(row.id, self._permits.ask_for(row.id, "", step).late_ms)
        if row.id.node is None:
            return
        if ClaimKind.PERMIT not in claimed or step is None:
            self._permits.put(turn, row.id, None)
            return
        standing = self._conditions.standing(row, step)
        row.asking = standing or self._permits.ask_for(row.id, self._next_id(), step)
        said = self._permits.said_here(row.id)
        self._permits.put(turn, row.id, row.asking)
        self._notes.refused.pop(row.id, None)
        if self._permits.said_here(row.id) != said:
            turn.dirty.add(row.id)  # gates that are closed already have answered at once

    def _note(self, row: EntityState, on: Awaits, now: int) -> None:
        """Note what ends its wait, and since when."""
        match on:
            case Awaited.AGENT:
                self._silent_ones.setdefault(str(row.id.node), {})[row.id] = None
            case Awaited.BRAKE:
                self.unrest.awaited_by(row.id)
            case PermitRefused():
                self._notes.refused[row.id] = on
            case Awaited.PERMIT if row.asking is not None:
                if self._notes.asked.get(row.id, ("", 0))[0] != row.asking.id:
                    self._notes.asked[row.id] = row.asking.id, now
            case _:
                pass

    def begins(self, row: EntityState, intent: Intent) -> None:
        """Its module is called."""
        self._spent.add(row.id)
        self.asks.begins(row.id)
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
            self.asks.takes_up(intent.id, intent.entity, ask.late_ms)

    def remember(self, disruption: Disruption, now: int) -> None:
        """This step of an earlier process counts in the budgets of this hour."""
        same = disruption.kernel_boot == self._side.kernel_boot
        at = disruption.began_at if same else now
        self._budgets.begin(disruption.entity, self._rules.where(disruption.entity), at)

    def heard(self, turn: Turn, node: str) -> None:
        """This neighbour is there: who waits to ask it goes on, and so does what it asks."""
        turn.dirty.update(self._silent_ones.pop(node, ()))
        turn.dirty.update(self._permits.entities(node))
        turn.dirty.update(self.asks.entities())
        if self._side.node is None:
            self.loans.reconcile(turn, node)

    def heard_below(self, turn: Turn, parent: str) -> None:
        """A parent below has reported, or is silent: lend it room, or take it back."""
        self.subtrees.reconcile(turn, parent)

    def recall(
        self, incarnations: Mapping[str, int], late_ms: Callable[[Context], int], now: int
    ) -> None:
        """An earlier process may have lent room to these nodes' agents, and to parents below.

        It was for steps that take so long where they run, late effects included.
        """
        if self._side.node is not None:
            return
        quiet_until = now + HEEDS_H * self._side.hello_ns
        over_at = quiet_until + late_ms(Context.SELF) * MS
        self._untold.expect(incarnations, self._peer, quiet_until, over_at)
        levels = self._near.charge.levels()
        quiet_until += len(levels) * LEVEL_H * self._side.hello_ns
        over_at = quiet_until + max(map(late_ms, Context)) * MS
        directly = dict.fromkeys(sorted(levels[0])) if levels else {}
        self._untold.expect(directly, self._near.parent_below, quiet_until, over_at)

    def unsure(self, now: int) -> str | None:
        """Why it is not known yet what is under way below."""
        return self._untold.why(now)

    def succeed(self, steps: Iterable[Step], now: int) -> int:
        """Another parent may have begun any of these until now; returns until when they may work.

        Until then nothing disruptive begins; and any node may boot.
        """
        for row in self._table:
            may_boot(row)
        return self.predecessor.begin(steps, now)

    def needs_a_person(self, node: EntityState, now: int) -> bool:
        """Whether its agent has to permit what disturbs it, is silent, and may be so for good."""
        if recovers(node) or Context.SELF not in self._conditions.asked_for(node, now):
            return False
        peer, kept = self._peer(node.id.name), self._near.keeps(node.id.name)
        return kept and (peer is None or not peer.fresh(now, self._side.hello_ns))

    def rounds(self, entities: Iterable[EntityId]) -> Pieces[int | None]:
        """In how many rounds the budgets let these be disturbed, at the least; None: in none."""
        return self._budgets.rounds((one, self._rules.where(one)) for one in entities)

    def release(self, turn: Turn, node: str | None = None) -> None:
        """Let go on what the brake has stopped; or what waits for the permit of a node."""
        if node is not None:
            self._notes.overridden[node] = turn.now + OVERRIDE_NS
            self.unrest.forgive(node)
            on_it = [row.id for row in self._table.on(node)]
            for one in on_it:
                self._notes.refused.pop(one, None)
            turn.dirty.update(on_it)
            return
        self.unrest.release(turn)

    def leave(self, turn: Turn, entity: EntityId) -> None:
        """Nothing disruptive is under way on this entity, or meant."""
        if not self.loans.asked(entity):
            self._budgets.leave(turn, entity)
        if not self._budgets.holds(entity):
            self.asks.leave(entity)
        self._notes.asked.pop(entity, None)
        self._spent.discard(entity)
        self._holders.discard(entity)
        if entity.node is not None:
            self._permits.put(turn, entity, None)

    def check_claims(self) -> None:
        """Assert that no entity holds what its last decision does not name."""
        held = [(one, ClaimKind.BUDGET) for one in self._budgets.held_here()]
        held += [(one, ClaimKind.PERMIT) for one in self._permits.asking()]
        for entity, kind in held:
            row = self._table.get(entity)
            decision = None if row is None else row.stance.decision
            if row is not None and decision is not None and row.work.stepping is None:
                assert decision.claim(kind) is not None, (entity, kind, decision)

    def rebudget(self, turn: Turn) -> None:
        """A budget was declared, changed or taken away."""
        self._budgets.wake_all(turn)


def _disrupts(row: EntityState) -> bool:
    """True while a disruptive step is under way on it."""
    return row.work.stepping is not None and row.work.stepping.step.disruptive
