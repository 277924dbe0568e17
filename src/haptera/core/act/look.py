"""The looks of an entity: when each is taken, and what its reading does to what is believed."""

from collections.abc import Callable, Collection

import msgspec

from haptera.core.desired.policies import Policies
from haptera.core.modules.calls import Calls, Pending
from haptera.core.modules.supervise import Supervisor
from haptera.core.state.entity.work import LookSchedule
from haptera.core.state.limits import BACKOFF_NS, LOOKS_OVERDUE_MAX, MS
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.state.typical_durations import Usual
from haptera.core.sync.presence import is_hearing
from haptera.model.declared.schema import Applied, digest_fault
from haptera.model.effects import Work
from haptera.model.entity import EntityId
from haptera.model.events import Answered, WatchReported
from haptera.model.facts import REPORTED_MS_MAX, Fact, Method
from haptera.model.parts import Look, Part
from haptera.planner.domain.domain import Domain

READING_BYTES_MAX = 64


class LookScheduler:
    """Keeps every look whose conditions hold as fresh as it is declared to be.

    `usual` is how long parts take on this side; `incarnation` tells in which boot of its node an
    entity is looked at.
    """

    def __init__(
        self,
        side: Side,
        timers: Timers,
        calls: Calls,
        supervisor: Supervisor,
        policies: Policies,
        incarnation: Callable[[EntityId], int],
        usual: Usual,
    ) -> None:
        self._side = side
        self._incarnation = incarnation
        self.usual = usual
        self._timers = timers
        self._calls = calls
        self._supervisor = supervisor
        self._policies = policies

    def need(self, turn: Turn, module: str) -> None:
        """Parts of this module are to be taken: have its process started where none runs."""
        self._supervisor.need(turn, module)

    def can(self, look: Look) -> bool:
        """Whether this side can take the look now, as far as its module goes."""
        return (
            self._side.runs(look) and not is_hearing(look) and self._supervisor.ready(look.module)
        )

    def unserved(self, part: Part) -> str | None:
        """Why the module of a part of this side cannot take it now; None where it can."""
        return self._supervisor.blocked(part.module)

    def schedule(self, row: EntityState, look: Look, at: int) -> int:
        """Take this look then, once it is open, or let one that is under way serve.

        Tells when it will be: later where it has failed, and is not to be tried again before.
        """
        looking = row.work.looks.setdefault(look.path, LookSchedule())
        looking.due_at = min(looking.due_at, max(at, looking.failed_until))
        return looking.due_at

    def schedule_others(self, row: EntityState, variables: Collection[str], now: int) -> None:
        """Take all looks anew but those at these variables: a step has done what nobody planned."""
        for looking in row.work.looks.values():
            if looking.look is not None and looking.look.at not in variables:
                self.schedule(row, looking.look, now)

    def is_coming(self, row: EntityState, look: Look) -> bool:
        """Whether an answer to this look is under way, or it waits in line to be asked."""
        looking = row.work.looks.get(look.path)
        return looking is not None and (
            looking.call is not None or self._calls.is_queued(row.id, look)
        )

    def reconcile(
        self, turn: Turn, row: EntityState, node: EntityState | None, domain: Domain, state: int
    ) -> list[str]:
        """Begin what is due among the open looks, end what is not; returns what claims a slot."""
        opened = domain.looks_open(state)
        for look in opened:
            if self._side.runs(look) and not is_hearing(look):
                self.need(turn, look.module)
        looks = {look.path: look for look in opened if self.can(look)}
        for path, looking in row.work.looks.items():
            if path not in looks:
                self._end(turn, looking)
        return [path for path, look in looks.items() if self._keep(turn, row, node, look)]

    def refresh(self, turn: Turn, row: EntityState, node: EntityState | None) -> bool:
        """Look again at what is at rest, without deciding on it; False where it is to be."""
        opened = [one for one in row.work.looks.values() if one.look is not None]
        if not row.at_rest or not all(self._holds(row, one, turn.now) for one in opened):
            return False
        seen = {one.look.at for one in opened if one.look is not None}
        others = [row.belief.known[name] for name in row.belief.known.keys() - seen]
        if any(one.method is Method.REPORTED or self._supervisor.knows(one.by) for one in others):
            return False
        claimed = []
        for looking in opened:
            assert looking.look is not None
            if self._keep(turn, row, node, looking.look):
                claimed.append(looking.look.path)
            self._timers.soonest(("look", row.id), self._dies_at(row, looking.look))
        self._calls.reconcile(row, claimed)
        return True

    def _holds(self, row: EntityState, looking: LookSchedule, now: int) -> bool:
        """Whether what a look found still counts, and its module is there to look again."""
        look = looking.look
        if look is None or looking.failed_until or not self.can(look):
            return False
        fact = row.belief.known.get(look.at)
        return fact is not None and fact.by == look.module and self._dies_at(row, look) > now

    def _dies_at(self, row: EntityState, look: Look) -> int:
        """When a reading is so old that looks are overdue."""
        within_ms = self._policies.terms(row.id, look).within_ms
        return row.belief.known[look.at].at + (LOOKS_OVERDUE_MAX * look.every_ms + within_ms) * MS

    def age(self, turn: Turn, row: EntityState, domain: Domain) -> None:
        """Remember what was read so long ago that looks are overdue, whatever holds them up.

        And at once what a module read that has failed: nobody looks at it for a while.
        """
        for look in domain.looks:
            fact = row.belief.known.get(look.at)
            if fact is None or fact.by != look.module or not self._ages(look, fact):
                continue
            dies_at = self._dies_at(row, look)
            if dies_at <= turn.now or self._supervisor.failed(look.module):
                row.belief.forget(look.at, turn.now)
                turn.changed.add(row.id)
            else:
                self._timers.soonest(("look", row.id), dies_at)
        self._age_reports(turn, row)

    def _age_reports(self, turn: Turn, row: EntityState) -> None:
        """Remember what others reported, once that is too old."""
        for name, fact in [*row.belief.known.items()]:
            if fact.method is not Method.REPORTED:
                continue
            if (ends_at := fact.at + REPORTED_MS_MAX * MS) <= turn.now:
                row.belief.forget(name, turn.now)
                turn.touch(row.id)
            else:
                self._timers.soonest(("look", row.id), ends_at)

    def _ages(self, look: Look, fact: Fact) -> bool:
        return self._side.runs(look) and not is_hearing(look) and fact.method is Method.READ

    def answered(self, turn: Turn, row: EntityState, pending: Pending, answer: Answered) -> None:
        """A look found something."""
        look = pending.part
        assert isinstance(look, Look)
        looking = row.work.looks[look.path]
        looking.call = None
        self.usual.took(look.path, turn.now - looking.asked_at)
        looking.due_at = turn.now + look.every_ms * MS
        if problem := _problem(row, look, answer, turn.now):
            self.failed(turn, row, pending, problem)
        else:
            self._learn(turn, row, look, answer)

    def sighted(self, turn: Turn, row: EntityState, pending: Pending, seen: WatchReported) -> None:
        """A watch reported this unasked; it counts as a look begun when it was seen.

        But not for the outcome of a step: it is as old as its stream is slow, so look.
        """
        look = pending.part
        assert isinstance(look, Look)
        if row.work.stepping is not None and row.work.stepping.begun:
            self.schedule(row, look, turn.now)
            turn.dirty.add(row.id)
        elif not _problem(row, look, seen, turn.now):
            row.work.looks[look.path].due_at = turn.now + look.every_ms * MS
            self._learn(turn, row, look, seen)

    def failed(self, turn: Turn, row: EntityState, pending: Pending, text: str) -> None:
        """A look failed, so nothing is known any more of what it looks at."""
        look = pending.part
        assert isinstance(look, Look)
        looking = row.work.looks[look.path]
        looking.call = None
        policy = self._policies.terms(row.id, look).policy
        failures = row.attempts.fail(look.path, f"{look.path}: {text}", policy)
        wait_ns = policy.wait_ms(failures, self._side.draw()) * MS
        looking.due_at = looking.failed_until = turn.now + wait_ns
        row.belief.forget(look.at, turn.now)
        turn.touch(row.id)

    def watch_ended(self, turn: Turn, row: EntityState, pending: Pending) -> None:
        """A watch ended by itself: the periodic look serves until it is opened again."""
        looking = row.work.looks[pending.part.path]
        looking.watch = None
        looking.watch_at = turn.now + BACKOFF_NS
        self._timers.soonest(("look", row.id), looking.watch_at)

    def give_up(self, row: EntityState) -> None:
        """Where a look's process is gone: look again as soon as there is one that serves."""
        for looking in row.work.looks.values():
            lost = [one for one in (looking.call, looking.watch) if self._gives_up(one)]
            if lost:
                looking.call = None if looking.call in lost else looking.call
                looking.watch = None if looking.watch in lost else looking.watch
                looking.due_at = looking.failed_until = looking.watch_at = 0

    def _gives_up(self, call: int | None) -> bool:
        return call is not None and self._calls.give_up(call) is not None

    def retire(self, turn: Turn, row: EntityState) -> None:
        """The entity is gone: nobody looks at it any more."""
        for looking in row.work.looks.values():
            self._end(turn, looking)
        self._calls.slots.rest(row.id)

    def _learn(
        self, turn: Turn, row: EntityState, look: Look, seen: Answered | WatchReported
    ) -> None:
        row.work.looks[look.path].failed_until = 0
        forgiven = row.attempts.failures.get(look.path)
        row.attempts.succeed(look.path)
        incarnation = self._incarnation(row.id)
        fact = Fact(seen.value, look.module, Method.READ, seen.at, incarnation, seen.note)
        held = row.belief.known.get(look.at)
        if row.belief.learn(look.at, fact):
            turn.changed.add(row.id)
        same = held is not None and msgspec.structs.replace(held, at=fact.at) == fact
        if same and forgiven is None and row.at_rest:
            # Nothing follows from it but when to look again.
            self._timers.soonest(("look", row.id), row.work.looks[look.path].due_at)
        else:
            turn.dirty.add(row.id)

    def _keep(self, turn: Turn, row: EntityState, node: EntityState | None, look: Look) -> bool:
        """Call for the look if that is due; tells whether it waits in line for its slot."""
        looking = row.work.looks.setdefault(look.path, LookSchedule())
        looking.look = look
        if looking.watch is not None and self._calls.is_outdated(looking.watch, row, node):
            # A watch never ends by itself: another one is opened, by what is desired now.
            self._calls.cancel(turn, looking.watch)
            looking.watch = None
        if look.watched and looking.watch is None and looking.watch_at <= turn.now:
            looking.watch = self._calls.ask(turn, row, node, look, Work.WATCH, deadline_at=None)
        if looking.call is not None:
            return False
        if looking.due_at > turn.now:
            self._timers.soonest(("look", row.id), looking.due_at)
            return False
        if not self._calls.takes_turn(turn, row, node, look):
            return True
        deadline_at = turn.now + self._policies.terms(row.id, look).within_ms * MS
        looking.asked_at, looking.usual_ns = turn.now, self.usual.of(look.path)
        looking.call = self._calls.ask(turn, row, node, look, Work.LOOK, deadline_at=deadline_at)
        return False

    def _end(self, turn: Turn, looking: LookSchedule) -> None:
        for call in (looking.call, looking.watch):
            if call is not None:
                self._calls.cancel(turn, call)
        looking.call = looking.watch = looking.look = None


def _problem(row: EntityState, look: Look, seen: Answered | WatchReported, now: int) -> str | None:
    """What is wrong with an answer that the look cannot give."""
    value = seen.value
    if seen.at > now:
        return "answered with a reading time in the future"
    variable = row.kind.variable(look.at)
    if variable is not None and variable.values is Applied:
        fault = digest_fault(value)
        return None if fault is None else f"answered {fault}"
    if value in look.outcomes:
        return None
    return f"answered {value[:READING_BYTES_MAX]!r}, which is not one of its outcomes"
