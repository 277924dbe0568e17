"""The decision on one entity, out of what is known and what others answer; nothing is changed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import msgspec
from msgspec import structs

from haptera.core.act.act import StepRunner, first_step
from haptera.core.act.contradiction import being_settled, contested
from haptera.core.act.oscillation import Scene, oscillates
from haptera.core.act.under_way import doing, in_phase, is_unwanted
from haptera.core.decide.at_rest import at_rest
from haptera.core.decide.lending import waiting_for
from haptera.core.desired.policies import Policies
from haptera.core.modules.catalog import Catalog
from haptera.core.modules.supervise import Supervisor
from haptera.core.safety.safety import Safety
from haptera.core.state.allowance import TurnAllowance
from haptera.core.state.entity.decision import (
    ASSENT,
    Assent,
    ClaimKind,
    Decision,
    Delay,
    EntityClaim,
    HelloDue,
    HelloMissed,
    Lacking,
    StopUnwanted,
    Wait,
    Withdraw,
    soonest,
)
from haptera.core.state.entity.verdict import Verdict
from haptera.core.state.entity.work import Phase
from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.sync.neighbours import Neighbours
from haptera.core.sync.presence import HEAR, is_heard, is_hearing, patience
from haptera.model.answers.views import Condition
from haptera.model.chain import Chain, Do, Find, Link, NoChain, ReasonKind
from haptera.model.entity import EntityId
from haptera.model.parts import Context, Part, Step
from haptera.model.policy import LASTS_NOT
from haptera.model.walltime import span
from haptera.planner.domain.bars import Bars
from haptera.planner.domain.domain import Domain
from haptera.planner.plan_query import PlanQuery, query_of


@dataclass(frozen=True, slots=True)
class Situation:
    """One entity as it is decided on: its class, its stripped state, its goal."""

    row: EntityState
    node: EntityState | None
    domain: Domain
    state: int
    goal: Mapping[str, str]

    def query(self, barred: Bars) -> PlanQuery:
        """The question for a chain to the goal."""
        return query_of(self.domain, self.state, self.goal, barred)


class Planned(msgspec.Struct, frozen=True, gc=False):
    """The plan of one entity, None while it is put off or searched for, as `doing` says.

    `only_barred` says why there is none without parts that failed lately. `again_at` is when to
    search again, `wake_at` for any of its searches; `incomplete` where the `allowance` was spent.
    """

    allowance: TurnAllowance
    barred: Bars
    plan: Chain | NoChain | None = None
    only_barred: NoChain | None = None
    again_at: int | None = None
    wake_at: int | None = None
    incomplete: bool = False
    doing: str = ""


_AS_DESIRED: Final = Decision(Verdict(Condition.CONVERGED))
# What an agent says of an entity that is not as desired.
_AT_IT: Final = (Condition.ACTING, Condition.WAITING, Condition.STUCK)


@dataclass(frozen=True, slots=True)
class Decider:
    """Decides; what it asks of all these is answered without any change to them."""

    side: Side
    catalog: Catalog
    table: EntityTable
    near: Neighbours
    supervisor: Supervisor
    acts: StepRunner
    policies: Policies
    safety: Safety

    def decide(self, situation: Situation, planned: Planned, now: int) -> Decision:
        """The next part of the plan, or why there is none; with all that this claims."""
        row = situation.row
        if row.work.stepping is not None:
            decision = self._under_way(situation, now)
        else:
            decision = self._to_begin(situation, planned, now)
        kept: tuple[EntityClaim, ...] = ()
        if self.safety.claims.holds(row.id):
            held = self.safety.kept(row)
            kept = tuple(one for one in held if decision.claim(one.kind) is None)
        if not kept and planned.wake_at is None and not planned.incomplete:
            return decision
        return structs.replace(
            decision,
            claims=(*decision.claims, *kept),
            wake_at=soonest(decision.wake_at, planned.wake_at),
            incomplete=decision.incomplete or planned.incomplete,
        )

    def _to_begin(self, situation: Situation, planned: Planned, now: int) -> Decision:
        row, plan = situation.row, planned.plan
        if not situation.goal:
            return Decision(at_rest(row))
        if (text := contested(row)) is not None:
            condition = Condition.ACTING if being_settled(row) else Condition.STUCK
            return Decision(Verdict(condition, text, "readings that agree"))
        if planned.only_barred is not None:
            return self._barred(situation.row, planned, now)
        if plan is None:
            return Decision(_at_work(row, planned.doing))
        if isinstance(plan, NoChain):
            return Decision(self._no_chain(row, plan, planned.again_at))
        if not plan.links:
            return _AS_DESIRED
        frozen = row.stance.frozen
        if frozen is not None and isinstance(plan.links[0], Do):
            needs = "the end of the freeze, or haptera thaw SELECTOR"
            return Decision(Verdict(Condition.WAITING, frozen, needs))
        return self._first_link(situation, planned, plan.links[0], now)

    def _barred(self, row: EntityState, planned: Planned, now: int) -> Decision:
        """Only parts that failed lately lead to the goal: wait until one may be tried again."""
        again_at = planned.again_at
        assert planned.only_barred is not None
        if planned.plan is None:
            verdict = _at_work(row, planned.doing)
        elif isinstance(planned.plan, Chain):
            why = row.attempts.error or _last_words(row)
            verdict = Verdict(Condition.STUCK, why, again_at=again_at)
        else:
            why = planned.only_barred.reason.text
            verdict = Verdict(Condition.STUCK, why, again_at=again_at)
        return Decision(verdict, wake_at=row.try_again_at(now))

    def _no_chain(self, row: EntityState, plan: NoChain, again_at: int | None) -> Verdict:
        if plan.reason.kind is ReasonKind.WAITS:
            return waiting_for(self.table, row, plan.reason, again_at)
        return Verdict(Condition.STUCK, plan.reason.text, again_at=again_at)

    def _under_way(self, situation: Situation, now: int) -> Decision:
        row, stepping = situation.row, situation.row.work.stepping
        assert stepping is not None
        if stepping.phase is Phase.WRITTEN:
            return self._durable(situation, now)
        slot = () if stepping.phase is Phase.READING else (_slot(stepping.step),)
        if is_unwanted(row, situation.goal):
            return Decision(_at_work(row, doing(row)), StopUnwanted(), slot)
        reading = stepping.phase is Phase.READING
        served = self._served(row.id, stepping.step) if reading else ASSENT
        if isinstance(served, Delay):
            return Decision(Verdict(Condition.WAITING, served.why, served.needs))
        return Decision(_at_work(row, doing(row)), claims=slot)

    def _durable(self, situation: Situation, now: int) -> Decision:
        """The intent is durable: the step is called, unless it is not wanted any more, or late."""
        row, stepping = situation.row, situation.row.work.stepping
        assert stepping is not None
        withdrawn = "not started: frozen" if row.stance.frozen is not None else None
        is_first = first_step(row) is stepping.step
        claims: tuple[EntityClaim, ...] = ()
        if withdrawn is None and is_first and stepping.step.disruptive and stepping.may_go(now):
            lacking, claims = self.safety.check(row, situation.domain, stepping.step, now)
            if lacking is not None:
                why = f"{stepping.step.path} waits: {lacking.why}"
                return Decision(
                    _at_work(row, why, lacking.needs), Wait(lacking.on),
                    (_slot(stepping.step), *claims), lacking.looks,
                    soonest(lacking.wake_at, stepping.deadline_at),
                )  # fmt: skip
        if withdrawn is None:
            withdrawn = self.acts.fault(row, now)
        if withdrawn is not None:
            # Until it is decided on again, still in this turn.
            verdict = replace(row.stance.verdict, needs=None, quotes=None, again_at=None)
            return Decision(verdict, Withdraw(withdrawn))
        verdict = _at_work(row, in_phase(row, stepping.step, Phase.CALLED))
        return Decision(verdict, stepping.step, (_slot(stepping.step), *claims))

    def _first_link(self, situation: Situation, planned: Planned, link: Link, now: int) -> Decision:
        """The first link where it is this side's; otherwise whose it is."""
        part, row = link.part, situation.row
        runs = self.side.runs(part)
        module: tuple[EntityClaim, ...] = ()
        if runs and not is_hearing(part):
            module = (EntityClaim(ClaimKind.MODULE, part.module, self._process(part)),)
        served = self._served(row.id, part)
        if isinstance(served, Delay):
            verdict = Verdict(Condition.WAITING, served.why, served.needs)
            return Decision(verdict, claims=module)
        if not runs:
            return Decision(_elsewhere(situation, part))
        if is_hearing(part):
            return self._hello(row, now)
        if isinstance(part, Step):
            decision = self._step(situation, planned, part, now)
            return structs.replace(decision, claims=(*module, *decision.claims))
        assert isinstance(link, Find)
        verdict = _at_work(row, f"{part.path}: checks whether {part.at} is {link.expect}")
        return Decision(verdict, part, module)

    def _served(self, entity: EntityId, part: Part) -> Assent | Delay:
        """The answer of the side of this part, if nothing else is in its way."""
        if (differs := self.near.differs_over(entity, self.catalog.schema)) is not None:
            return Delay(differs, "the same kinds and modules on both sides")
        return self._process(part) if self.side.runs(part) and not is_hearing(part) else ASSENT

    def _process(self, part: Part) -> Assent | Delay:
        """The answer of the process of the part's module: given while it serves."""
        text = self.supervisor.blocked(part.module)
        return ASSENT if text is None else Delay(text, f"module {part.module}, to serve")

    def _step(self, situation: Situation, planned: Planned, step: Step, now: int) -> Decision:
        row = situation.row
        early = self._too_early(situation, step, now)
        if early is not None:
            return early
        claims: tuple[EntityClaim, ...] = ()
        if step.enrols:
            turn = self.safety.claims.turn_to_boot(row, now)
            claims = (EntityClaim(ClaimKind.BOOT, str(row.id), turn),)
            if isinstance(turn, Delay):
                text = f"{step.path} waits for its turn: {turn.why}"
                verdict = Verdict(Condition.WAITING, text, turn.needs, again_at=turn.until)
                return Decision(verdict, claims=claims, wake_at=turn.until)
        if step.disruptive:
            lacking, wanted = self.safety.check(row, situation.domain, step, now)
            claims += wanted
            if lacking is not None:
                claims = (EntityClaim(ClaimKind.QUEUE, step.path), *claims)
                return self._lacking(situation, planned, step, lacking, claims)
        slot = self.acts.slot_for(row, situation.node, step)
        if isinstance(slot, Delay):
            verdict = _at_work(row, f"{step.path} waits for its turn: {slot.why}")
            return Decision(verdict, claims=(_slot(step, slot), *claims))
        verdict = _at_work(row, in_phase(row, step, Phase.WRITING))
        return Decision(verdict, step, (_slot(step), *claims))

    def _too_early(self, situation: Situation, step: Step, now: int) -> Decision | None:
        """Why a step waits for a time that what came before has set."""
        row = situation.row
        policy = self.policies.terms(row.id, step).policy
        if (circle := oscillates(self._scene(situation), step, policy, now)) is not None:
            needs = "a fix in one of the modules, or other desired values"
            again_at = circle.again_at(now)
            verdict = Verdict(Condition.STUCK, circle.text, needs, again_at=again_at)
            return Decision(verdict, Wait(circle), wake_at=again_at)
        again_at = row.attempts.again_at(step, policy, now)
        if again_at > now:
            text = f"{step.path}{LASTS_NOT}"
            needs = "an end to whatever undoes it"
            text = f"{text}{row.notes(step)}"
            verdict = Verdict(Condition.STUCK, text, needs, again_at=again_at)
            return Decision(verdict, wake_at=again_at)
        if row.work.unsettled is not None and now < row.work.unsettled[1]:
            path, until = row.work.unsettled
            text = f"{path} did not return, and may still take effect"
            needs = "the end of the time in which it may take effect"
            return Decision(Verdict(Condition.WAITING, text, needs, again_at=until), wake_at=until)
        former = self.safety.predecessor.holds(row, step, now)
        if former is not None:
            text = f"{step.path} waits: {former.why}"
            verdict = Verdict(Condition.WAITING, text, former.needs, again_at=former.at)
            return Decision(verdict, Wait(former.on), wake_at=former.wake_at)
        return None

    def _lacking(
        self, situation: Situation, planned: Planned, step: Step, lacking: Lacking,
        claims: tuple[EntityClaim, ...],
    ) -> Decision:  # fmt: skip
        """A disruptive step waits for one of its conditions."""
        row = situation.row
        # What keeps a cheaper chain from being taken, to be put before words on this one.
        aside = self.catalog.plans.aside(situation.query(planned.barred), planned.allowance)
        instead = f"{aside}; instead " if aside else ""
        text = f"{instead}{step.path} waits: {lacking.why}{row.attempts.error_clause}"
        verdict = Verdict(Condition.WAITING, text, lacking.needs, again_at=lacking.at)
        return Decision(
            verdict, Wait(lacking.on), claims, lacking.looks, lacking.wake_at,
            incomplete=aside is None,
        )  # fmt: skip

    def _scene(self, situation: Situation) -> Scene:
        node = situation.node
        if node is None or node is situation.row:
            return Scene(situation.row, situation.domain)
        return Scene(situation.row, situation.domain, (node, self.catalog.domain(node, node)))

    def _hello(self, row: EntityState, now: int) -> Decision:
        """Wait for the agent's hello; past the time that a boot may take, say that none came.

        Much later the look has failed, and is barred for its cool-down, so that another part may
        come first: its power may be switched off and on. Given up, it is only waited for as long.
        """
        terms = self.policies.terms(row.id, HEAR)
        policy, within_ns = terms.policy, terms.within_ms * MS
        given_up = policy.gives_up(row.attempts.failures.get(HEAR.path, 0))
        times = patience(row, now, within_ns)
        until = now + (policy.cool_down_ms * MS if given_up else times * within_ns)
        waiting = row.work.looks.get(HEAR.path)
        due_at = min((waiting.due_at if waiting else 0) or until, until)
        if now >= due_at:
            error = _unheard(times * terms.within_ms)
            return Decision(Verdict(Condition.STUCK, error), Wait(HelloMissed(error)))
        overdue_at = due_at - (times - 1) * within_ns
        if given_up:
            verdict, wake_at = _at_work(row, "waits to hear from the agent"), due_at
        elif now >= overdue_at:
            verdict, wake_at = Verdict(Condition.STUCK, _unheard(terms.within_ms)), due_at
        else:
            verdict, wake_at = _at_work(row, "waits to hear from the agent"), overdue_at
        return Decision(verdict, Wait(HelloDue(due_at)), wake_at=wake_at)


def _slot(step: Step, answer: Assent | Delay = ASSENT) -> EntityClaim:
    return EntityClaim(ClaimKind.SLOT, step.path, answer)


def _unheard(ms: int) -> str:
    return f"nothing heard from the agent for {span(ms)}"


def _at_work(row: EntityState, doing: str, needs: str | None = None) -> Verdict:
    """Under way; but what has failed before is stuck until it has succeeded."""
    if row.attempts.error is None:
        return Verdict(Condition.ACTING, doing, needs)
    return Verdict(Condition.STUCK, row.attempts.error, needs)


def _elsewhere(situation: Situation, part: Part) -> Verdict:
    """The other side's turn: in an agent's own words where it is there and has said what it does.

    An agent that takes all to be well, or that is silent, has nothing to say of this part.
    """
    row, stands = situation.row, situation.row.report.stands
    if stands is None or stands.condition not in _AT_IT or not is_heard(situation.node):
        return Verdict(Condition.WAITING, f"{part.path} is up to {_other_side(row, part)}")
    return Verdict(stands.condition, stands.why, quotes=stands)


def _other_side(row: EntityState, part: Part) -> str:
    return "the parent" if part.context is Context.PARENT else f"the agent of {row.id.node}"


def _last_words(row: EntityState) -> str:
    """The outcome of the last step that failed: a look has failed since, and works again."""
    failed = (one for one in reversed(row.attempts.tried) if not one.worked)
    last = next(failed, None)
    return "the next part failed" if last is None else f"{last.path}: {last.outcome}"
