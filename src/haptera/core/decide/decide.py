"""Where an entity stands on its way, and what its side does about the next part of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from haptera.core.act.act import Acts, first_step
from haptera.core.act.contradiction import Contests, being_settled, contested
from haptera.core.act.look import Looks
from haptera.core.act.oscillation import Scene, oscillates, rest
from haptera.core.decide.backlog import Backlog
from haptera.core.decide.plan_queue import Searches
from haptera.core.desired.freezes import Freezes
from haptera.core.desired.policies import Policies
from haptera.core.modules.catalog import Catalog
from haptera.core.safety.safety import Safety
from haptera.core.state.diff import goal as goal_of
from haptera.core.state.limits import MS
from haptera.core.state.row import Looking, Phase, Row
from haptera.core.state.side import Side
from haptera.core.state.start import start
from haptera.core.state.table import Table
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.presence import BOOT_PATIENCE, HEAR, is_heard
from haptera.model.chain import Chain, Do, Find, Link, NoChain, ReasonKind, gives_up
from haptera.model.entity import EntityId
from haptera.model.facts import Method
from haptera.model.parts import Context, Part, Step
from haptera.model.views import Condition
from haptera.model.walltime import span
from haptera.planner.domain.domain import Domain
from haptera.planner.plan_query import query_of


@dataclass(frozen=True, slots=True)
class Place:
    """One entity as it is decided on: its class, its stripped state, its goal."""

    row: Row
    node: Row | None
    domain: Domain
    state: int
    goal: Mapping[str, str]


Standing = tuple[Condition, str | None]
# Why a part is not taken now, and what it needs.
Lacking = tuple[str, str]
# What an agent says of an entity that is not as desired.
_AT_IT: Final = (Condition.ACTING, Condition.WAITING, Condition.STUCK)


@dataclass(frozen=True, slots=True)
class Hands:
    """What carries decisions out, and what may stand in their way."""

    looks: Looks
    acts: Acts
    contests: Contests
    freezes: Freezes
    policies: Policies
    safety: Safety
    searches: Searches


class Decisions:
    """State, diff and plan of one entity become an act, a look, or a wait with its reason."""

    def __init__(
        self,
        side: Side,
        catalog: Catalog,
        table: Table,
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

    def place(self, turn: Turn, row: Row) -> Place:
        """Strip the entity's state, its node's having been stripped before."""
        node = self._table.node_of(row)
        domain = self._catalog.domain(row, node)
        goal = goal_of(row, domain)
        self._looks.age(turn, row, domain)
        state = start(row, node, domain, goal)
        known = domain.known(state)
        for name in [name for name in row.reported if name in known and name not in row.known]:
            if row.learn(name, row.reported[name]):
                turn.changed.add(row.id)
                if row.resident:
                    turn.dirty.add(row.id)  # its goal, where nobody gave one, is what it is
        for name in [name for name in row.known if name not in known]:
            if row.known[name].method is Method.READ:
                self._contests.strip(turn, row, domain, name)
                row.forget(name, turn.now)
                turn.changed.add(row.id)
                if row.resident:
                    turn.dirty.add(row.id)
        return Place(row, node, domain, state, goal)

    def decide(self, turn: Turn, row: Row) -> None:
        """Bring one entity a part further, as far as this side can."""
        self._hurried = False
        self._acts.take_up(row, turn.now)
        place = self.place(turn, row)
        self._contests.review(turn, row, place.domain, place.state)
        self._acts.review(turn, row, place.domain, place.state)
        row.quotes = None
        condition, why = self._stand(turn, place)
        if row.plan is not None or not place.goal:
            self._searches.release(row.id)
        self._safety.settle(turn, row)
        if condition is Condition.CONVERGED:
            row.error = row.failing = None
            row.failures.clear()
            if row.condition is condition:
                rest(row, turn.now)
        if row.arrive(condition, why, turn.now):
            turn.changed.add(row.id)
        if row.quotes is not None:
            row.since = row.quotes.since
        self._looks.tend(turn, row, place.node, place.domain, place.state)
        if row is place.node:
            self._lend(turn, row)
        (self.backlog.plan if self._hurried else self.backlog.planned)(row.id)

    def _lend(self, turn: Turn, node: Row) -> None:
        """What others borrow of a node has changed, or its attributes: decide on them, too."""
        known = [(name, fact.value) for name, fact in node.known.items()]
        lent = (*sorted(known), *sorted(node.attributes.items()))
        if lent != node.lent:
            node.lent = lent
            turn.dirty.update(row.id for row in self._table.on(node.id.node) if row is not node)

    def _stand(self, turn: Turn, place: Place) -> Standing:
        row = place.row
        barred = row.bars(place.state, turn.now)
        row.asking = row.needs = row.replan_at = None
        row.plan = self._plan(turn, place, barred) if place.goal else None
        frozen = self._freezes.why(row.id, turn.now)
        if frozen != row.frozen:
            row.frozen = frozen
            turn.changed.add(row.id)
        if row.stepping is not None:
            return self._under_way(turn, place, frozen)
        if not place.goal:
            return Condition.IDLE, None
        if (text := contested(row)) is not None:
            row.needs = "readings that agree"
            return (Condition.ACTING if being_settled(row) else Condition.STUCK), text
        if row.plan is None:
            return _at_work(row, self._searches.doing(row.id))
        if isinstance(row.plan, NoChain):
            return self._no_chain(turn, place, row.plan, barred)
        if not row.plan.links:
            return Condition.CONVERGED, None
        if frozen is not None and isinstance(row.plan.links[0], Do):
            row.needs = "the end of the freeze, or haptera thaw"
            return Condition.WAITING, frozen
        return self._take(turn, place, row.plan.links[0])

    def _under_way(self, turn: Turn, place: Place, frozen: str | None) -> Standing:
        row = place.row
        withheld = frozen is not None and self._acts.withhold(turn, row, "not begun: frozen")
        if not withheld and (hindered := self._hindered(turn, place)):
            return _at_work(row, hindered)
        if withheld or not self._go(turn, place):
            return row.condition, row.why  # until it is decided on again, still in this turn
        assert row.stepping is not None
        reading = row.stepping.phase is Phase.READING
        if reading and (blocked := self._blocked(row.id, row.stepping.step)):
            return _lacks(row, blocked)
        return _at_work(row, _doing(row))

    def _hindered(self, turn: Turn, place: Place) -> str | None:
        """What has come in the way of a disruptive step since it was decided on."""
        stepping = place.row.stepping
        if stepping is None or not stepping.step.disruptive or not stepping.may_go(turn.now):
            return None
        if first_step(place.row) is not stepping.step:
            return None
        lacking = self._safety.check(turn, place.row, place.domain, stepping.step)
        if lacking is None:
            return None
        self._timers.soonest(("decide", place.row.id), stepping.deadline_at)
        return f"{stepping.step.path} waits: {lacking}"

    def _go(self, turn: Turn, place: Place) -> bool:
        """Go on with a step whose intent is durable; False where it is over before it began."""
        stepping = place.row.stepping
        meant = stepping is not None and stepping.phase is Phase.WRITTEN
        going = self._acts.go(turn, place.row, place.node)
        if meant and stepping is not None and stepping.begun and stepping.step.disruptive:
            self._safety.begins(place.row, stepping.intent)
        return going

    def _plan(self, turn: Turn, place: Place, barred: frozenset[str]) -> Chain | NoChain | None:
        """The plan; None while it is put off, or a worker searches for it."""
        row = place.row
        answer = self._catalog.plan(row, place.node, place.state, place.goal, barred)
        if answer is None:
            self._hurried = True
            return None
        if not gives_up(answer):
            return answer
        if row.stepping is not None and row.stepping.begun:
            return None  # What comes next depends on what will be read.
        question = query_of(place.domain, place.state, place.goal, barred)
        verdict = self._searches.ask(turn, row.id, question)
        if verdict is None:
            return None
        if verdict.again_at is not None:
            row.replan_at = verdict.again_at
            self._timers.soonest(("decide", row.id), verdict.again_at)
        return verdict.answer

    def _no_chain(
        self, turn: Turn, place: Place, answer: NoChain, barred: frozenset[str]
    ) -> Standing:
        row = place.row
        if answer.reason.kind is ReasonKind.WAITS:
            return Condition.WAITING, answer.reason.text
        if barred:
            again_at = row.try_again_at(turn.now)
            assert again_at is not None
            self._timers.soonest(("decide", row.id), again_at)
            row.plan = self._plan(turn, place, frozenset())
            if row.plan is None:
                return _at_work(row, self._searches.doing(row.id))
            if isinstance(row.plan, Chain):
                return Condition.STUCK, row.error or _last_words(row)
        return Condition.STUCK, answer.reason.text

    def _take(self, turn: Turn, place: Place, link: Link) -> Standing:
        """Take the first link where it is this side's; otherwise say whose it is."""
        part = link.part
        self._looks.need(turn, part)
        if blocked := self._blocked(place.row.id, part):
            return _lacks(place.row, blocked)
        if not self._side.runs(part):
            return _elsewhere(place, part)
        if part is HEAR:
            return self._hear(turn, place.row)
        if isinstance(part, Step):
            return self._step(turn, place, part)
        self._looks.want(place.row, part, turn.now)
        assert isinstance(link, Find)
        return _at_work(place.row, f"{part.path}: looks whether {part.at} is {link.expect}")

    def _step(self, turn: Turn, place: Place, step: Step) -> Standing:
        row = place.row
        policy = self._policies.terms(row.id, step).policy
        if (circle := oscillates(self._scene(place), step, policy, turn.now)) is not None:
            self._timers.soonest(("decide", row.id), circle.again_at(turn.now))
            row.needs = "one of the modules mended, or something else being desired"
            return Condition.STUCK, circle.text
        again_at = row.again_at(step, policy, turn.now)
        if again_at > turn.now:
            self._timers.soonest(("decide", row.id), again_at)
            row.needs = "an end to what undoes it"
            text = "had to be done again and again: it does not last"
            return Condition.STUCK, f"{step.path} {text}{row.notes(step)}"
        if row.unsettled is not None and turn.now < row.unsettled[1]:
            path, until = row.unsettled
            self._timers.soonest(("decide", row.id), until)
            row.needs = "the time in which it may take effect to be over"
            return Condition.WAITING, f"{path} never returned, and may still take effect"
        if step.enrols and self._safety.boots_later(row, turn.now):
            row.needs = "its turn to boot"
            return Condition.WAITING, f"{step.path} waits for its turn: others boot first"
        if step.disruptive:
            lacking = self._safety.check(turn, row, place.domain, step)
            if lacking is not None:
                self._acts.stays(row, step)
                instead = self._instead(place, turn.now)
                return Condition.WAITING, f"{instead}{step.path} waits: {lacking}"
        if (queue := self._acts.queues(turn, row, place.node, step)) is not None:
            return _at_work(row, f"{step.path} waits for its turn: {queue}")
        intent_id = self._acts.next_id() if row.asking is None else row.asking.id
        self._acts.begin(turn, row, step, place.state, intent_id)
        return _at_work(row, _doing(row))

    def _instead(self, place: Place, now: int) -> str:
        """What keeps a cheaper chain from being taken, to be put before words on this one."""
        row, barred = place.row, place.row.bars(place.state, now)
        text = self._catalog.aside(row, place.node, place.state, place.goal, barred)
        if text is None:
            self._hurried = True
        return f"{text}; instead " if text else ""

    def _scene(self, place: Place) -> Scene:
        node = place.node
        if node is None or node is place.row:
            return Scene(place.row, place.domain)
        return Scene(place.row, place.domain, (node, self._catalog.domain(node, node)))

    def _hear(self, turn: Turn, row: Row) -> Standing:
        """Wait for the agent's hello; past the time that a boot may take, say that none came.

        Much later the look has failed, and is barred for its cool-down, so that another part may
        come first: its power may be switched off and on. Given up, it is only waited for as long.
        """
        terms = self._policies.terms(row.id, HEAR)
        policy, within_ns = terms.policy, terms.within_ms * MS
        given_up = policy.gives_up(row.failures.get(HEAR.path, 0))
        until = turn.now + (policy.cool_down_ms * MS if given_up else BOOT_PATIENCE * within_ns)
        usual_ns = self._looks.usual.of(HEAR.path)
        waiting = Looking(asked_at=turn.now, usual_ns=usual_ns)
        looking = row.looks.setdefault(HEAR.path, waiting)
        looking.due_at = min(looking.due_at or until, until)
        if turn.now < looking.due_at:
            overdue_at = looking.due_at - (BOOT_PATIENCE - 1) * within_ns
            overdue = not given_up and turn.now >= overdue_at
            self._timers.soonest(("decide", row.id), looking.due_at)
            if not given_up and not overdue:
                self._timers.soonest(("decide", row.id), overdue_at)
            if overdue:
                return Condition.STUCK, _unheard(terms.within_ms)
            return _at_work(row, "waits to hear from the agent")
        if given_up:
            row.failures.pop(HEAR.path)
        failures = row.fail(HEAR.path, _unheard(BOOT_PATIENCE * terms.within_ms), policy)
        looking.due_at = 0
        if not policy.gives_up(failures):
            looking.failed_until = turn.now + policy.cool_down_ms * MS
        turn.dirty.add(row.id)
        return Condition.STUCK, row.error


def _unheard(ms: int) -> str:
    return f"nothing heard from the agent for {span(ms)}"


def _at_work(row: Row, doing: str) -> Standing:
    """Under way; but what has failed before is stuck until it has succeeded."""
    return (Condition.ACTING, doing) if row.error is None else (Condition.STUCK, row.error)


def _lacks(row: Row, lacking: Lacking) -> Standing:
    text, row.needs = lacking
    return Condition.WAITING, text


def _elsewhere(place: Place, part: Part) -> Standing:
    """The other side's turn: in an agent's own words where it is there and has said what it does.

    An agent that takes all to be well, or that is silent, has nothing to say of this part.
    """
    row, stands = place.row, place.row.stands
    if stands is None or stands.condition not in _AT_IT or not is_heard(place.node):
        return Condition.WAITING, f"{part.path} is up to {_other_side(row, part)}"
    row.quotes = stands
    return stands.condition, stands.why


def _other_side(row: Row, part: Part) -> str:
    return "the parent" if part.context is Context.PARENT else f"the agent of {row.id.node}"


def _doing(row: Row) -> str:
    assert row.stepping is not None
    words = {
        Phase.WRITING: "is about to run",
        Phase.WRITTEN: "is about to run",
        Phase.CALLED: "runs",
        Phase.READING: "its outcome is being read",
    }
    step = row.stepping.step
    return f"{step.path}: {words[row.stepping.phase]}{row.notes(step)}"


def _last_words(row: Row) -> str:
    """What came of the last step that failed: a look has failed since, and works again."""
    failed = (one for one in reversed(row.tried) if not one.worked)
    last = next(failed, None)
    return "the next part failed" if last is None else f"{last.path}: {last.outcome}"
