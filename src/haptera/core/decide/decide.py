"""The way of one entity through a turn: it is read, decided on, and the decision carried out."""

from dataclasses import dataclass

from msgspec import structs

from haptera.core.act.act import StepRunner, first_step
from haptera.core.act.contradiction import ReadingConflicts, contested
from haptera.core.act.look import LookScheduler
from haptera.core.act.oscillation import rest
from haptera.core.decide.backlog import Backlog
from haptera.core.decide.decider import Decider, Planned, Situation
from haptera.core.decide.lending import touch_borrowers
from haptera.core.decide.plan_queue import PlanQueue
from haptera.core.desired.freezes import Freezes
from haptera.core.desired.policies import Policies
from haptera.core.modules.calls import Calls
from haptera.core.modules.catalog import Catalog
from haptera.core.modules.supervise import Supervisor
from haptera.core.safety.safety import Safety
from haptera.core.state.diff import goal as goal_of
from haptera.core.state.entity.attempts import Oscillation
from haptera.core.state.entity.decision import (
    Assent,
    Awaits,
    ClaimKind,
    Decision,
    HelloDue,
    HelloMissed,
    Stale,
    StopUnwanted,
    Wait,
    Withdraw,
    soonest,
)
from haptera.core.state.entity.work import LookSchedule
from haptera.core.state.limits import MS
from haptera.core.state.related import known_of_related
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.start import start
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.neighbours import Neighbours
from haptera.core.sync.presence import HEAR
from haptera.core.views.story import Story
from haptera.model.answers.views import Condition
from haptera.model.chain import NoChain, ReasonKind, gives_up
from haptera.model.facts import Method
from haptera.model.parts import Look, Step
from haptera.planner.domain.bars import NO_BARS, Bars


@dataclass(frozen=True, slots=True)
class Hands:
    """What carries decisions out, and what may stand in their way."""

    supervisor: Supervisor
    calls: Calls
    looks: LookScheduler
    acts: StepRunner
    contests: ReadingConflicts
    freezes: Freezes
    policies: Policies
    safety: Safety
    searches: PlanQueue


class Decisions:
    """State, diff and plan of one entity become an act, a look, or a wait with its reason."""

    def __init__(
        self,
        side: Side,
        catalog: Catalog,
        table: EntityTable,
        timers: Timers,
        near: Neighbours,
        hands: Hands,
    ) -> None:
        self._catalog = catalog
        self._table = table
        self._timers = timers
        self._looks, self._acts = hands.looks, hands.acts
        self._contests, self._freezes = hands.contests, hands.freezes
        self._policies, self._safety = hands.policies, hands.safety
        self._searches = hands.searches
        self.backlog = Backlog()
        self.story = Story()
        self.decider = Decider(
            side, catalog, table, near, hands.supervisor, hands.acts, hands.policies, hands.safety
        )

    def assess(self, turn: Turn, row: EntityState) -> Situation:
        """Strip the entity's state, its node's having been stripped before."""
        node = self._table.node_of(row)
        domain = self._catalog.domain(row, node)
        goal = goal_of(row, domain)
        self._looks.age(turn, row, domain)
        row.stance.relate(known_of_related(self._table, row, node))
        state = start(row, node, domain, goal)
        known = domain.known(state)
        for name in [
            name for name in row.report.facts if name in known and name not in row.belief.known
        ]:
            if row.belief.learn(name, row.report.facts[name]):
                turn.changed.add(row.id)
                if row.desired.resident:
                    turn.dirty.add(row.id)  # its goal, where nobody gave one, is what it is
        for name in [name for name in row.belief.known if name not in known]:
            if row.belief.known[name].method is Method.READ:
                self._contests.strip(turn, row, domain, name)
                row.belief.forget(name, turn.now)
                turn.changed.add(row.id)
                if row.desired.resident:
                    turn.dirty.add(row.id)
        return Situation(row, node, domain, state, goal)

    def decide(self, turn: Turn, row: EntityState, assessed: Situation | None = None) -> None:
        """Read what there is, decide, and carry that out.

        The entity was `assessed` just before, or is here.
        """
        self._timers.drop(("decide", row.id))
        situation = assessed or self.assess(turn, row)
        self._contests.review(turn, row, situation.domain, situation.state)
        self._acts.review(turn, row, situation.domain, situation.state)
        planned = self._plan(turn, situation)
        self.freeze(turn, row)
        step = first_step(row)
        if step is not None and step.disruptive:
            self._safety.claims.renew(turn, row)
        decision = self.decider.decide(situation, planned, turn.now)
        self.story.note(turn.now, row, decision)
        row.stance.decision = decision
        self._carry_out(turn, situation, decision)

    def _carry_out(self, turn: Turn, situation: Situation, decision: Decision) -> None:
        """Claims first: a step goes by what it was granted."""
        row, verdict = situation.row, decision.status
        if decision.wake_at is not None:
            self._timers.soonest(("decide", row.id), decision.wake_at)
        self._safety.claims.reconcile(turn, row, decision)
        slots = self._claim(turn, situation, decision)
        self._act(turn, situation, decision)
        if verdict.condition is Condition.CONVERGED:
            row.attempts.recover()
            if row.stance.condition is verdict.condition:
                rest(row, turn.now)
        if row.stance.arrive(verdict, turn.now):
            turn.changed.add(row.id)
        slots += self._looks.reconcile(turn, row, situation.node, situation.domain, situation.state)
        self._acts.reconcile(row, slots)
        touch_borrowers(turn, self._table, row, self._catalog)
        (self.backlog.plan if decision.incomplete else self.backlog.planned)(row.id)

    def _claim(self, turn: Turn, situation: Situation, decision: Decision) -> list[str]:
        """Claim what modules have; returns the parts that claim slots."""
        row, step = situation.row, first_step(situation.row)
        slots = []
        for one in decision.claims:
            match one.kind:
                case ClaimKind.MODULE:
                    self._looks.need(turn, one.id)
                case ClaimKind.SLOT if row.work.stepping is None and step is not None:
                    granted = self._acts.claim_slot(turn, row, situation.node, step)
                    assert granted is isinstance(one.answer, Assent), one
                    slots.append(one.id)
                case ClaimKind.QUEUE if step is not None:
                    self._acts.keep_place(row, step)
                    slots.append(one.id)
                case _:
                    pass  # of the safety, which has it by now
        return slots

    def _act(self, turn: Turn, situation: Situation, decision: Decision) -> None:
        row = situation.row
        for look in decision.looks:
            self._looks.schedule(row, look, turn.now)
        match decision.next:
            case Look() as look:
                self._looks.schedule(row, look, turn.now)
            case Step() as step if row.work.stepping is None:
                intent_id = self._acts.next_id() if row.asking is None else row.asking.id
                begun = self._acts.begin(turn, row, step, situation.state, intent_id)
                begun.aim(situation.goal)
            case Step() as step:
                intent = self._acts.go(turn, row, situation.node)
                if step.disruptive:
                    self._safety.claims.begins(row, intent)
            case Withdraw(outcome):
                self._acts.withdraw(turn, row, outcome)
            case StopUnwanted():
                self._acts.stop(turn, row)
            case Wait(on):
                self._note(turn, row, on)

    def _note(self, turn: Turn, row: EntityState, on: Awaits | None) -> None:
        """Note what the entity itself is known by while it waits."""
        match on:
            case Oscillation():
                row.attempts.oscillates(on)
            case Stale(variables):
                for name in variables:
                    row.belief.forget(name, turn.now)
                turn.touch(row.id)
            case HelloDue(due_at):
                usual_ns = self._looks.usual.of(HEAR.path)
                waiting = LookSchedule(asked_at=turn.now, usual_ns=usual_ns)
                row.work.schedule(HEAR.path, waiting).due_at = due_at
            case HelloMissed(error):
                self._missed(turn, row, error)
            case _:
                pass  # of the safety, which has noted it

    def _missed(self, turn: Turn, row: EntityState, error: str) -> None:
        """No hello came: the look has failed, and another part may come first for its cool-down."""
        policy = self._policies.terms(row.id, HEAR).policy
        if policy.gives_up(row.attempts.failures.get(HEAR.path, 0)):
            row.attempts.retry(HEAR.path)
        failures = row.attempts.fail(HEAR.path, error, policy)
        looking = row.work.schedule(HEAR.path, LookSchedule(asked_at=turn.now))
        looking.due_at = 0
        if not policy.gives_up(failures):
            looking.failed_until = turn.now + policy.cool_down_ms * MS
        turn.dirty.add(row.id)

    def freeze(self, turn: Turn, row: EntityState) -> str | None:
        """Note what freezes this entity, in words; None where nothing does."""
        frozen = self._freezes.why(row.id, turn.now)
        if frozen != row.stance.frozen:
            row.stance.frozen = frozen
            turn.changed.add(row.id)
        return frozen

    def _plan(self, turn: Turn, situation: Situation) -> Planned:
        """Make the plan; where only parts that failed lately lead on, one with them."""
        row, barred = situation.row, situation.row.bars(turn.now)
        planned = Planned(turn.allowance, barred)
        if situation.goal:
            planned = self._sought(turn, situation, barred)
            none = planned.plan if isinstance(planned.plan, NoChain) else None
            stuck = none is not None and none.reason.kind is not ReasonKind.WAITS
            if stuck and barred and row.work.stepping is None and contested(row) is None:
                free = self._sought(turn, situation, NO_BARS)
                wake_at = soonest(planned.wake_at, free.wake_at)
                planned = structs.replace(free, barred=barred, only_barred=none, wake_at=wake_at)
        row.stance.plan = planned.plan
        if planned.plan is not None or not situation.goal:
            self._searches.release(row.id)
        return planned

    def _sought(self, turn: Turn, situation: Situation, barred: Bars) -> Planned:
        """The plan, None while it is put off or a worker searches for it; when to search again."""
        row, allowance = situation.row, turn.allowance
        query = situation.query(barred)
        answer = self._catalog.plans.plan(query, allowance)
        if answer is None:
            doing = self._searches.doing(row.id)
            return Planned(allowance, barred, incomplete=True, doing=doing)
        if not gives_up(answer):
            return Planned(allowance, barred, answer)
        if row.work.stepping is not None and row.work.stepping.begun:
            return Planned(allowance, barred)  # What comes next depends on what will be read.
        found = self._searches.ask(turn, row.id, query)
        if found is None:
            return Planned(allowance, barred, doing=self._searches.doing(row.id))
        at = found.again_at
        return Planned(allowance, barred, found.answer, again_at=at, wake_at=at)
