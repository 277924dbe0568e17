"""The numbered conditions of a disruptive step, as docs/explain/acting.md lists them."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, NamedTuple, assert_never

from haptera.core.act.contradiction import contested
from haptera.core.modules.gates import has_no_agent, recovers
from haptera.core.safety.budget_rules import BudgetRules, is_away, is_serving, is_to_serve
from haptera.core.safety.budgets import Budgets
from haptera.core.safety.evidence import Evidence
from haptera.core.safety.permits import PERMIT_AGAIN_NS, Permits, permit_of
from haptera.core.safety.predecessor import Predecessor
from haptera.core.safety.room import RoomAsks
from haptera.core.safety.unrest import Unrest
from haptera.core.state.entity.decision import (
    ASSENT,
    Assent,
    Awaited,
    ClaimAnswer,
    ClaimKind,
    Delay,
    Denial,
    EntityClaim,
    Lacking,
    soonest,
)
from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.sync.peers import DOWN_AFTER, SUSPECT_AFTER, Peer
from haptera.kinds.node import Busy, Power, agent, busy, power
from haptera.model.facts import Method
from haptera.model.parts import Context, Step
from haptera.planner.domain.domain import Domain

# How often an outstanding answer is asked for again, a hello.
_ASKS_A_HELLO: Final = {Awaited.PERMIT: 5, Awaited.ROOM: 1}


@dataclass(frozen=True, slots=True)
class DisruptiveCase:
    """One disruptive step on one entity; `asked` are the sides whose gates are asked for it."""

    row: EntityState
    node: EntityState
    step: Step
    domain: Domain
    asked: Collection[Context]
    now: int


Condition = Callable[[DisruptiveCase], Lacking | None]


class Checked(NamedTuple):
    """The first condition that does not hold (None: all do), and what the step claims by then."""

    lacking: Lacking | None
    claims: tuple[EntityClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class ConditionSources:
    """The sources of the conditions."""

    side: Side
    peer: Callable[[str], Peer | None]
    predecessor: Predecessor
    unrest: Unrest
    evidence: Evidence
    rules: BudgetRules
    budgets: Budgets
    room: RoomAsks
    permits: Permits


class Conditions:
    """Reads the conditions in their order, and changes nothing."""

    def __init__(self, sources: ConditionSources) -> None:
        self._from = sources
        self._side, self._peer = sources.side, sources.peer
        self._permits = sources.permits
        self._before: Final[tuple[Condition, ...]] = (
            self._no_former_parent_acts,  # 1
            self._brake_is_off,  # 2
            self._node_does_not_flap,  # 3
            self._node_did_not_just_refuse,  # 4
            self._readings_agree,  # 5
            self._node_can_be_asked,  # 6
            self._what_is_excluded_is_known,  # 7
        )
        # A service disturbs only those whom it serves (decision 82).
        self._of_services: Final[tuple[Condition, ...]] = (
            self._no_former_parent_acts,  # 1
            self._brake_is_off,  # 2
            self._node_does_not_flap,  # 3
            self._readings_agree,  # 5
        )

    def check(self, case: DisruptiveCase) -> Checked:
        """The obstacle to this step now, and its claims meanwhile."""
        of_service = case.row.kind.serves is not None
        if of_service and not (is_to_serve(case.row) and is_serving(case.row)):
            return Checked(None)
        for holds in self._of_services if of_service else self._before:
            if (lacking := holds(case)) is not None:
                return Checked(lacking)
        claims = self._places(case)  # 8
        lacking = self._lacking(case, claims[-1].answer)
        if of_service:
            return Checked(lacking, claims)
        # What was requested for this step before goes on being requested meanwhile.
        asks = self._permits.standing(case.row, case.step) is not None
        standing = (_permit(case.row),) if asks else ()
        lacking = lacking or self._readings_are_fresh(case)  # 9
        if lacking is not None:
            return Checked(lacking, (*claims, *standing))
        answer = self._node_permits(case)  # 10
        lacking = self._lacking(case, answer)
        if isinstance(answer, Denial):
            return Checked(lacking)
        return Checked(lacking, (*claims, _permit(case.row, answer)))

    def kept(self, row: EntityState) -> tuple[EntityClaim, ...]:
        """The claims that it holds and goes on holding, whatever comes next.

        A disruptive step under way keeps all that it has; who was disrupted, and is to serve,
        keeps its place until it serves again.
        """
        stepping = row.work.stepping
        disrupts = stepping is not None and stepping.step.disruptive
        if not (disrupts or is_away(row)) or not self._from.budgets.holds_here(row.id):
            return ()
        claims = [_place(row)]
        if self._from.room.holds(row.id):
            claims.append(_place_above(row))
        if disrupts and row.id.node is not None and self._permits.ask_of(row.id) is not None:
            claims.append(_permit(row))
        return tuple(claims)

    def asked_for(self, node: EntityState, now: int) -> Collection[Context]:
        """On which sides gates are asked for it: on none where nothing runs that can be hurt."""
        if self._permits.is_overridden(node.id.name, now):
            return ()
        if self._side.folded and agent.name in node.belief.known:
            return (Context.PARENT,)
        peer = self._peer(node.id.name)
        # We booted it, it boots closed, and it has not enrolled since. But where one reading of
        # power misled us, it has run all the while; one that never enrolled has no jobs of ours.
        booted = _not_heard_since(peer, node.work.booted_at) and (
            node.work.booted_surely or peer is None
        )
        if booted or self._has_no_power(node, now):
            return ()
        if self._side.context is Context.SELF:
            return (Context.SELF,)
        # An agent that is there is asked, whatever is declared.
        if has_no_agent(node) and peer is None:
            return (Context.PARENT,)
        if (recovers(node) or has_no_agent(node)) and self._is_down(peer, now):
            return (Context.PARENT,)
        return (Context.PARENT, Context.SELF)

    def _no_former_parent_acts(self, case: DisruptiveCase) -> Lacking | None:
        """1. No step of a former parent can still take effect."""
        until = self._from.predecessor.held_until
        if case.now >= until:
            return None
        return Lacking(
            "this parent was promoted: steps of the former parent may still take effect",
            "the end of the time in which the former parent's steps may take effect",
            until,
            until,
        )

    def _brake_is_off(self, case: DisruptiveCase) -> Lacking | None:
        """2. The brake is off."""
        return self._from.unrest.holds_all(case.now)

    def _node_does_not_flap(self, case: DisruptiveCase) -> Lacking | None:
        """3. The node does not flap."""
        return None if case.row.id.node is None else self._from.unrest.holds(case.node, case.now)

    def _node_did_not_just_refuse(self, case: DisruptiveCase) -> Lacking | None:
        """4. The node has not just refused its permit; or it has become free since."""
        refused = self._permits.refusal(case.row.id, case.now)
        if refused is None:
            return None
        fact = case.node.belief.known.get(busy.name)
        free = fact is not None and fact.value == Busy.FREE
        if free and case.node.belief.found_at[busy.name] > refused.again_at - PERMIT_AGAIN_NS:
            return None
        needs = permit_of(case.row.id)
        return Lacking(refused.why, needs, refused.again_at, refused.again_at)

    def _readings_agree(self, case: DisruptiveCase) -> Lacking | None:
        """5. The readings of the entity, and those of its node, do not contradict each other."""
        of_service = case.row.kind.serves is not None
        rows = (case.row,) if of_service else (case.row, case.node)
        text = next((text for row in rows if (text := contested(row)) is not None), None)
        return None if text is None else Lacking(text, "readings that agree")

    def _node_can_be_asked(self, case: DisruptiveCase) -> Lacking | None:
        """6. The node can be asked: one that is not there takes nobody's place meanwhile."""
        if (never := self._from.evidence.never_permitted(case.node, case.asked)) is not None:
            return never
        if Context.SELF not in case.asked or self._side.node is not None:
            return None
        name, node = case.node.id.name, case.node
        peer = self._peer(name)
        if peer is not None and peer.fresh(case.now, self._side.hello_ns):
            return None
        wake_at = None
        if peer is not None and recovers(node):
            down_at = peer.silent_since + DOWN_AFTER * self._side.hello_ns
            wake_at = max(down_at, case.now + MS)
        way_out = "" if recovers(node) else f", or haptera override {name} --why TEXT"
        return Lacking(
            f"the agent of {name} is silent: no-permit",
            f"the agent of {name}, to be heard{way_out}",
            wake_at,
            wake_at,
            Awaited.AGENT,
        )

    def _what_is_excluded_is_known(self, case: DisruptiveCase) -> Lacking | None:
        """7. What the step excludes is known: each variable that it excludes was read."""
        contexts = {*case.asked, self._side.context}
        return self._from.evidence.unknown(case.row, case.node, case.step, contexts)

    def _places(self, case: DisruptiveCase) -> tuple[EntityClaim, ...]:
        """8. There is room in the budgets, here and above: claimed one after the other."""
        row, now = case.row, case.now
        here = self._from.budgets.answer(row.id, self._from.rules.where(row.id), now)
        # The parents above have no budget for an entity that is on no node.
        if isinstance(here, Delay) or self._side.is_root or row.id.node is None:
            return (_place(row, here),)
        return _place(row, here), _place_above(row, self._from.room.answer(row.id, now))

    def _readings_are_fresh(self, case: DisruptiveCase) -> Lacking | None:
        """9. The readings are fresh: each variable that the step names was read lately."""
        return self._from.evidence.unseen(case.row, case.domain, case.step, case.now)

    def _node_permits(self, case: DisruptiveCase) -> ClaimAnswer:
        """10. The node grants a permit: all gates that are asked for it say so."""
        return self._permits.answer(case.row, case.step, case.asked, case.now)

    def _lacking(self, case: DisruptiveCase, answer: ClaimAnswer) -> Lacking | None:
        """The obstacle that an answer is to the step."""
        match answer:
            case Assent():
                return None
            case Delay(why, needs, until, on):
                ask_at = None if on is None else case.now + self._side.hello_ns // _ASKS_A_HELLO[on]
                # Meanwhile its agent may show that the last step was harmless.
                harmless = case.row.work.harmless is not None
                shown_at = case.now + self._side.hello_ns if harmless else None
                return Lacking(why, needs, until, soonest(until, ask_at, shown_at), on)
            case Denial(why, again_at):
                return Lacking(why, permit_of(case.row.id), wake_at=again_at, on=answer)
            case _:
                assert_never(answer)

    def _has_no_power(self, node: EntityState, now: int) -> bool:
        fact = node.belief.known.get(power.name)
        if fact is None or fact.method is not Method.READ or fact.value != Power.OFF:
            return False
        return (now - fact.at) * 10 <= SUSPECT_AFTER * self._side.hello_ns

    def _is_down(self, peer: Peer | None, now: int) -> bool:
        return peer is not None and now - peer.silent_since >= DOWN_AFTER * self._side.hello_ns


def _place(row: EntityState, answer: Assent | Delay = ASSENT) -> EntityClaim:
    return EntityClaim(ClaimKind.BUDGET, str(row.id), answer)


def _place_above(row: EntityState, answer: Assent | Delay = ASSENT) -> EntityClaim:
    return EntityClaim(ClaimKind.BUDGET_ABOVE, str(row.id), answer)


def _permit(row: EntityState, answer: Assent | Delay = ASSENT) -> EntityClaim:
    return EntityClaim(ClaimKind.PERMIT, str(row.id.node), answer)


def _not_heard_since(peer: Peer | None, booted_at: int | None) -> bool:
    if booted_at is None:
        return False
    return peer is None or peer.heard_at is None or peer.heard_at < booted_at
