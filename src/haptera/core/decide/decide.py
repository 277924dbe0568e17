"""Where an entity stands on its way, and what its side does about the next part of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from haptera.core.act.act import StepRunner, first_step
from haptera.core.act.contradiction import ReadingConflicts, being_settled, contested
from haptera.core.act.look import LookScheduler
from haptera.core.act.oscillation import Scene, oscillates, rest
from haptera.core.act.under_way import doing, is_unwanted
from haptera.core.decide.at_rest import at_rest
from haptera.core.decide.backlog import Backlog
from haptera.core.decide.lending import touch_borrowers, waiting_for
from haptera.core.decide.plan_queue import PlanQueue
from haptera.core.desired.freezes import Freezes
from haptera.core.desired.policies import Policies
from haptera.core.modules.catalog import Catalog
from haptera.core.safety.safety import Safety
from haptera.core.state.diff import goal as goal_of
from haptera.core.state.entity.verdict import Lacking, Verdict
from haptera.core.state.entity.work import LookSchedule, Phase
from haptera.core.state.limits import MS
from haptera.core.state.related import known_of_related
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.start import start
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.presence import HEAR, is_heard, is_hearing, patience
from haptera.model.answers.views import Condition
from haptera.model.chain import Chain, Do, Find, Link, NoChain, ReasonKind, gives_up
from haptera.model.entity import EntityId
from haptera.model.facts import Method
from haptera.model.parts import Context, Part, Step
from haptera.model.walltime import span
from haptera.planner.domain.bars import NO_BARS, Bars
from haptera.planner.domain.domain import Domain
from haptera.planner.plan_query import query_of


@dataclass(frozen=True, slots=True)
class Situation:
    """One entity as it is decided on: its class, its stripped state, its goal."""

    row: EntityState
    node: EntityState | None
    domain: Domain
    state: int
    goal: Mapping[str, str]


_CONVERGED: Final = Verdict(Condition.CONVERGED)
# What an agent says of an entity that is not as desired.
_AT_IT: Final = (Condition.ACTING, Condition.WAITING, Condition.STUCK)


@dataclass(frozen=True, slots=True)
class Hands:
    """What carries decisions out, and what may stand in their way."""

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
        hands: Hands,
        blocked: Callable[[EntityId, Part], Lacking | None],
    ) -> None:
        self._side = side
        self._catalog = catalog
        self._table = table
        self._timers = timers
        self._looks, self._acts = hands.looks, hands.acts
        self._contests, self._freezes = hands.contests, hands.freezes
        self._policies, self._safety = hands.policies, hands.safety
        self._searches = hands.searches
        self.backlog = Backlog()
        self._blocked = blocked
        self._hurried = False

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
        """Bring one entity a part further, as far as this side can.

        It was `assessed` just before, or is here. All that it may wait for is found anew.
        """
        self._hurried = False
        self._timers.drop(("decide", row.id))
        situation = assessed or self.assess(turn, row)
        self._contests.review(turn, row, situation.domain, situation.state)
        self._acts.review(turn, row, situation.domain, situation.state)
        verdict = self._stand(turn, situation)
        if row.stance.plan is not None or not situation.goal:
            self._searches.release(row.id)
        self._safety.settle(turn, row)
        if verdict.condition is Condition.CONVERGED:
            row.attempts.recover()
            if row.stance.condition is verdict.condition:
                rest(row, turn.now)
        if row.stance.arrive(verdict, turn.now):
            turn.changed.add(row.id)
        self._looks.tend(turn, row, situation.node, situation.domain, situation.state)
        touch_borrowers(turn, self._table, row, self._catalog)
        (self.backlog.plan if self._hurried else self.backlog.planned)(row.id)

    def freeze(self, turn: Turn, row: EntityState) -> str | None:
        """Note what freezes this entity, in words; None where nothing does."""
        frozen = self._freezes.why(row.id, turn.now)
        if frozen != row.stance.frozen:
            row.stance.frozen = frozen
            turn.changed.add(row.id)
        return frozen

    def _stand(self, turn: Turn, situation: Situation) -> Verdict:
        row = situation.row
        barred = row.bars(turn.now)
        self._safety.reconsider(row)
        row.stance.plan = again_at = None
        if situation.goal:
            row.stance.plan, again_at = self._plan(turn, situation, barred)
        frozen = self.freeze(turn, row)
        if row.work.stepping is not None:
            return self._under_way(turn, situation, frozen)
        if not situation.goal:
            return at_rest(row)
        if (text := contested(row)) is not None:
            condition = Condition.ACTING if being_settled(row) else Condition.STUCK
            return Verdict(condition, text, "readings that agree")
        if row.stance.plan is None:
            return _at_work(row, self._searches.doing(row.id))
        if isinstance(row.stance.plan, NoChain):
            return self._no_chain(turn, situation, row.stance.plan, barred, again_at)
        if not row.stance.plan.links:
            return _CONVERGED
        if frozen is not None and isinstance(row.stance.plan.links[0], Do):
            return Verdict(Condition.WAITING, frozen, "the end of the freeze, or haptera thaw")
        return self._take(turn, situation, row.stance.plan.links[0])

    def _under_way(self, turn: Turn, situation: Situation, frozen: str | None) -> Verdict:
        row = situation.row
        withheld = frozen is not None and self._acts.withhold(turn, row, "not started: frozen")
        if not withheld and (hindered := self._hindered(turn, situation)):
            return _at_work(row, *hindered[:2])
        if withheld or not self._go(turn, situation):
            # Until it is decided on again, still in this turn.
            return replace(row.stance.verdict, needs=None, quotes=None, again_at=None)
        assert row.work.stepping is not None
        if is_unwanted(row, situation.goal):
            self._acts.stop(turn, row)
        reading = row.work.stepping.phase is Phase.READING
        if reading and (blocked := self._blocked(row.id, row.work.stepping.step)):
            return Verdict(Condition.WAITING, *blocked[:2])
        return _at_work(row, doing(row))

    def _hindered(self, turn: Turn, situation: Situation) -> Lacking | None:
        """What has come in the way of a disruptive step since it was decided on."""
        stepping = situation.row.work.stepping
        if stepping is None or not stepping.step.disruptive or not stepping.may_go(turn.now):
            return None
        if first_step(situation.row) is not stepping.step:
            return None
        lacking = self._safety.check(turn, situation.row, situation.domain, stepping.step)
        if lacking is None:
            return None
        self._timers.soonest(("decide", situation.row.id), stepping.deadline_at)
        return lacking._replace(why=f"{stepping.step.path} waits: {lacking.why}")

    def _go(self, turn: Turn, situation: Situation) -> bool:
        """Go on with a step whose intent is durable; False where it is over before it began."""
        stepping = situation.row.work.stepping
        meant = stepping is not None and stepping.phase is Phase.WRITTEN
        going = self._acts.go(turn, situation.row, situation.node)
        if meant and stepping is not None and stepping.begun and stepping.step.disruptive:
            self._safety.begins(situation.row, stepping.intent)
        return going

    def _plan(
        self, turn: Turn, situation: Situation, barred: Bars
    ) -> tuple[Chain | NoChain | None, int | None]:
        """The plan, None while it is put off or a worker searches for it; when to search again."""
        row = situation.row
        answer = self._catalog.plan(
            row, situation.node, situation.state, situation.goal, barred, turn.allowance
        )
        if answer is None:
            self._hurried = True
            return None, None
        if not gives_up(answer):
            return answer, None
        if row.work.stepping is not None and row.work.stepping.begun:
            return None, None  # What comes next depends on what will be read.
        question = query_of(situation.domain, situation.state, situation.goal, barred)
        found = self._searches.ask(turn, row.id, question)
        if found is None:
            return None, None
        if found.again_at is not None:
            self._timers.soonest(("decide", row.id), found.again_at)
        return found.answer, found.again_at

    def _no_chain(
        self,
        turn: Turn,
        situation: Situation,
        answer: NoChain,
        barred: Bars,
        again_at: int | None,
    ) -> Verdict:
        row = situation.row
        if answer.reason.kind is ReasonKind.WAITS:
            return waiting_for(self._table, row, answer.reason, again_at)
        if barred:
            try_again_at = row.try_again_at(turn.now)
            assert try_again_at is not None
            self._timers.soonest(("decide", row.id), try_again_at)
            row.stance.plan, again_at = self._plan(turn, situation, NO_BARS)
            if row.stance.plan is None:
                return _at_work(row, self._searches.doing(row.id))
            if isinstance(row.stance.plan, Chain):
                return Verdict(
                    Condition.STUCK, row.attempts.error or _last_words(row), again_at=again_at
                )
        return Verdict(Condition.STUCK, answer.reason.text, again_at=again_at)

    def _take(self, turn: Turn, situation: Situation, link: Link) -> Verdict:
        """Take the first link where it is this side's; otherwise say whose it is."""
        part = link.part
        self._looks.need(turn, part)
        if blocked := self._blocked(situation.row.id, part):
            return Verdict(Condition.WAITING, *blocked[:2])
        if not self._side.runs(part):
            return _elsewhere(situation, part)
        if is_hearing(part):
            return self._hear(turn, situation.row)
        if isinstance(part, Step):
            return self._step(turn, situation, part)
        self._looks.want(situation.row, part, turn.now)
        assert isinstance(link, Find)
        return _at_work(situation.row, f"{part.path}: checks whether {part.at} is {link.expect}")

    def _step(self, turn: Turn, situation: Situation, step: Step) -> Verdict:
        row = situation.row
        policy = self._policies.terms(row.id, step).policy
        if (circle := oscillates(self._scene(situation), step, policy, turn.now)) is not None:
            self._timers.soonest(("decide", row.id), circle.again_at(turn.now))
            needs = "a fix in one of the modules, or other desired values"
            return Verdict(Condition.STUCK, circle.text, needs)
        again_at = row.attempts.again_at(step, policy, turn.now)
        if again_at > turn.now:
            self._timers.soonest(("decide", row.id), again_at)
            text = f"{step.path} was repeated several times: its effect does not last"
            return Verdict(
                Condition.STUCK, f"{text}{row.notes(step)}", "an end to whatever undoes it"
            )
        if row.work.unsettled is not None and turn.now < row.work.unsettled[1]:
            path, until = row.work.unsettled
            self._timers.soonest(("decide", row.id), until)
            text = f"{path} did not return, and may still take effect"
            needs = "the end of the time in which it may take effect"
            return Verdict(Condition.WAITING, text, needs, again_at=until)
        if (former := self._safety.predecessor.waits(turn, row, step)) is not None:
            needs = "the end of the time in which the former parent's steps may take effect"
            return Verdict(Condition.WAITING, f"{step.path} waits: {former}", needs)
        if step.enrols and self._safety.boots_later(row, turn.now):
            text = f"{step.path} waits for its turn: others boot first"
            return Verdict(Condition.WAITING, text, "its turn to boot")
        if step.disruptive:
            lacking = self._safety.check(turn, row, situation.domain, step)
            if lacking is not None:
                self._acts.stays(row, step)
                instead = self._instead(turn, situation)
                text = f"{instead}{step.path} waits: {lacking.why}{row.attempts.told}"
                return Verdict(Condition.WAITING, text, lacking.needs, again_at=lacking.at)
        if (queue := self._acts.queues(turn, row, situation.node, step)) is not None:
            return _at_work(row, f"{step.path} waits for its turn: {queue}")
        intent_id = self._acts.next_id() if row.asking is None else row.asking.id
        self._acts.begin(turn, row, step, situation.state, intent_id)
        assert row.work.stepping is not None
        row.work.stepping.aim(situation.goal)
        return _at_work(row, doing(row))

    def _instead(self, turn: Turn, situation: Situation) -> str:
        """What keeps a cheaper chain from being taken, to be put before words on this one."""
        row, barred = situation.row, situation.row.bars(turn.now)
        text = self._catalog.aside(
            row, situation.node, situation.state, situation.goal, barred, turn.allowance
        )
        if text is None:
            self._hurried = True
        return f"{text}; instead " if text else ""

    def _scene(self, situation: Situation) -> Scene:
        node = situation.node
        if node is None or node is situation.row:
            return Scene(situation.row, situation.domain)
        return Scene(situation.row, situation.domain, (node, self._catalog.domain(node, node)))

    def _hear(self, turn: Turn, row: EntityState) -> Verdict:
        """Wait for the agent's hello; past the time that a boot may take, say that none came.

        Much later the look has failed, and is barred for its cool-down, so that another part may
        come first: its power may be switched off and on. Given up, it is only waited for as long.
        """
        terms = self._policies.terms(row.id, HEAR)
        policy, within_ns = terms.policy, terms.within_ms * MS
        given_up = policy.gives_up(row.attempts.failures.get(HEAR.path, 0))
        times = patience(row, turn.now, within_ns)
        until = turn.now + (policy.cool_down_ms * MS if given_up else times * within_ns)
        usual_ns = self._looks.usual.of(HEAR.path)
        waiting = LookSchedule(asked_at=turn.now, usual_ns=usual_ns)
        looking = row.work.schedule(HEAR.path, waiting)
        looking.due_at = min(looking.due_at or until, until)
        if turn.now < looking.due_at:
            overdue_at = looking.due_at - (times - 1) * within_ns
            overdue = not given_up and turn.now >= overdue_at
            self._timers.soonest(("decide", row.id), looking.due_at)
            if not given_up and not overdue:
                self._timers.soonest(("decide", row.id), overdue_at)
            if overdue:
                return Verdict(Condition.STUCK, _unheard(terms.within_ms))
            return _at_work(row, "waits to hear from the agent")
        if given_up:
            row.attempts.retry(HEAR.path)
        failures = row.attempts.fail(HEAR.path, _unheard(times * terms.within_ms), policy)
        looking.due_at = 0
        if not policy.gives_up(failures):
            looking.failed_until = turn.now + policy.cool_down_ms * MS
        turn.dirty.add(row.id)
        return Verdict(Condition.STUCK, row.attempts.error)


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
    """What came of the last step that failed: a look has failed since, and works again."""
    failed = (one for one in reversed(row.attempts.tried) if not one.worked)
    last = next(failed, None)
    return "the next part failed" if last is None else f"{last.path}: {last.outcome}"
