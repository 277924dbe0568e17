"""The room as others see it: what a disruptive step lacks, and what people say about that."""

from collections.abc import Iterable

from haptera.core.act.act import StepRunner
from haptera.core.modules.gates import recovers
from haptera.core.safety.budget_rules import BudgetRules
from haptera.core.safety.budgets import Budgets
from haptera.core.safety.claims import Claims
from haptera.core.safety.conditions import Checked, Conditions, ConditionSources, DisruptiveCase
from haptera.core.safety.evidence import Evidence
from haptera.core.safety.exchange import ClaimExchange
from haptera.core.safety.permits import Permits
from haptera.core.safety.predecessor import Predecessor
from haptera.core.safety.unrest import Unrest
from haptera.core.state.entity.decision import EntityClaim, Lacking
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.neighbours import Neighbours
from haptera.core.sync.presence import may_boot
from haptera.model.changes import Disruption
from haptera.model.entity import EntityId
from haptera.model.parts import Context, Step
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.pieces import Pieces


class Safety:
    """Says what is lacking to each disruptive step, and changes nothing for that.

    `claims` are what entities hold here, `exchange` what neighbours ask of each other.
    """

    def __init__(
        self,
        side: Side,
        table: EntityTable,
        timers: Timers,
        evidence: Evidence,
        permits: Permits,
        near: Neighbours,
        acts: StepRunner,
    ) -> None:
        self._side = side
        self._table = table
        self._near = near
        self.permits = permits
        self._rules = rules = BudgetRules(table)
        self._budgets = budgets = Budgets(rules.size, rules.declared, rules.instances, rules.away)
        self.unrest = unrest = Unrest(rules.size)
        self.predecessor = Predecessor()
        self.exchange = ClaimExchange(
            side, timers, budgets, rules.where, permits, near, acts.next_id
        )
        self.claims = Claims(table, rules, budgets, unrest, self.exchange, acts)
        sources = ConditionSources(
            side, near.peer, self.predecessor, unrest, evidence,
            rules, budgets, self.exchange.asks, permits,
        )  # fmt: skip
        self._conditions = Conditions(sources)

    def check(self, row: EntityState, domain: Domain, step: Step, now: int) -> Checked:
        """The obstacle to this disruptive step now, and its claims meanwhile."""
        node = self._table.node_of(row)
        if node is None and (row.kind.serves is None or not row.kind.of_cluster):
            return Checked(Lacking("it is on no node that could permit it: no-permit"))
        asked = () if node is None else self._conditions.asked_for(node, now)
        return self._conditions.check(DisruptiveCase(row, node or row, step, domain, asked, now))

    def kept(self, row: EntityState) -> tuple[EntityClaim, ...]:
        """The claims that it holds and goes on holding, whatever comes next."""
        return self._conditions.kept(row)

    def remember(self, disruption: Disruption, now: int) -> None:
        """This step of an earlier process counts in the budgets of this hour."""
        same = disruption.kernel_boot == self._side.kernel_boot
        at = disruption.began_at if same else now
        self._budgets.begin(disruption.entity, self._rules.where(disruption.entity), at)

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
        peer, kept = self._near.peer(node.id.name), self._near.keeps(node.id.name)
        return kept and (peer is None or not peer.fresh(now, self._side.hello_ns))

    def rounds(self, entities: Iterable[EntityId]) -> Pieces[int | None]:
        """In how many rounds the budgets let these be disturbed, at the least; None: in none."""
        return self._budgets.rounds((one, self._rules.where(one)) for one in entities)

    def release(self, turn: Turn, node: str | None = None) -> None:
        """Let go on what the brake has stopped; or what waits for the permit of a node."""
        if node is None:
            self.unrest.release(turn)
            return
        on_it = [row.id for row in self._table.on(node)]
        self.permits.override(node, on_it, turn.now)
        self.unrest.forgive(node)
        turn.dirty.update(on_it)

    def rebudget(self, turn: Turn) -> None:
        """A budget was declared, changed or taken away."""
        self._budgets.wake_all(turn)
