"""Steps under way: an intent before the effect, one at a time, and its outcome read after it."""

from collections import Counter
from collections.abc import Callable, Collection
from typing import Final

import msgspec

from haptera.core.act.contradiction import contested
from haptera.core.act.look import LookScheduler
from haptera.core.act.outcome import (
    agreed_ns,
    changed_nothing,
    found,
    is_over,
    needed,
    results,
    without_effect,
)
from haptera.core.desired.policies import Policies
from haptera.core.modules.calls import Calls, Pending
from haptera.core.state.entity.attempts import Tried
from haptera.core.state.entity.decision import Assent, Delay
from haptera.core.state.entity.work import HarmlessStep, Phase, StepRun
from haptera.core.state.limits import BACKOFF_NS, MS, S
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.presence import BOOT_PATIENCE, HEAR
from haptera.core.sync.presence import MODULE as SYNC
from haptera.model.chain import Chain, Do
from haptera.model.changes import CloseIntent, OpenIntent
from haptera.model.effects import StopStep, Work, Write
from haptera.model.entity import EntityId
from haptera.model.events import Progressed
from haptera.model.facts import Fact, Method
from haptera.model.intent import Intent
from haptera.model.parts import Step
from haptera.model.walltime import span
from haptera.planner.domain.domain import Domain

# Readings that agree over so long are not one lie of a device.
SURE_NS: Final = 1 * S
# How soon an outcome that is not there yet is looked at again.
READ_AGAIN_NS: Final = 200 * MS
# How soon it is decided on again where no module is there to look.
UNSERVED_AGAIN_NS: Final = 5 * S
_TOO_LATE: Final = "not started: its intent was stored too late"

# Hands out the number under which the answer to a write comes back for this intent.
Tickets = Callable[[Intent | None], int]


class StepRunner:
    """Begins steps, follows them, and says when one is over."""

    def __init__(
        self,
        side: Side,
        timers: Timers,
        calls: Calls,
        looks: LookScheduler,
        policies: Policies,
        tickets: Tickets,
    ) -> None:
        self._side = side
        self._timers = timers
        self._calls = calls
        self._looks = looks
        self._policies = policies
        self._tickets = tickets
        # With the time at which each is settled.
        self._left: dict[EntityId, tuple[Intent, Step, int]] = {}
        self._count = 0
        # How steps have ended: their path, and whether they worked.
        self.outcomes: Counter[tuple[str, bool]] = Counter()

    def next_id(self) -> str:
        """An id that no other intent has."""
        self._count += 1
        return f"{self._side.instance:x}-{self._count}"

    def slot_for(self, row: EntityState, node: EntityState | None, step: Step) -> Assent | Delay:
        """The answer to a claim of a slot for a step that begins now."""
        return self._calls.slot_for(row, node, step)

    def claim_slot(
        self, turn: Turn, row: EntityState, node: EntityState | None, step: Step
    ) -> bool:
        """Have the step take its module's slot, or a place in line for it."""
        return self._calls.takes_turn(turn, row, node, step)

    def keep_place(self, row: EntityState, step: Step) -> None:
        """A step is not begun yet; if it waits in line, it keeps its place."""
        self._calls.stay(row.id, step)

    def reconcile(self, row: EntityState, claimed: Collection[str]) -> None:
        """The parts of these paths claim slots of their modules; no others of the entity do."""
        self._calls.reconcile(row, claimed)

    def begin(
        self, turn: Turn, row: EntityState, step: Step, start: int, intent_id: str
    ) -> StepRun:
        """Mean to take this step: nothing is done before the intent is durable."""
        intent = Intent(
            intent_id, row.id, step.module, step.name, turn.now,
            self._side.kernel_boot, step.enrols, step.disruptive,
        )  # fmt: skip
        row.work.harmless = None
        begun = row.work.begin(StepRun(
            intent, step, start, self._settled_at(intent, step),
            usual_ns=self._looks.usual.of(step.path), seen_ns=agreed_ns(row, step),
        ))  # fmt: skip
        opened = OpenIntent(intent)
        if step.enrols:
            within_ms = self._policies.terms(row.id, HEAR).within_ms
            level = self._calls.enrolment(step.module)
            opened = OpenIntent(intent, level, BOOT_PATIENCE * within_ms)
        turn.effects.append(Write(self._tickets(intent), (opened,)))
        return begun

    def load(self, turn: Turn, intent: Intent, step: Step) -> None:
        """An earlier process may have begun this step; nothing of it can have begun since.

        That is counted too, for the step may have had more time then than policies give it now.
        """
        if intent.kernel_boot != self._side.kernel_boot:
            # The clock has begun anew since: count from now, which is the safe side.
            intent = msgspec.structs.replace(intent, began_at=turn.now)
        settled_at = turn.now + step.late_ms * MS
        if not step.ends_with_call:
            settled_at = max(self._settled_at(intent, step), settled_at)
        self.leave(turn, intent, step, settled_at)

    def leave(self, turn: Turn, intent: Intent, step: Step, settled_at: int) -> None:
        """This step may have been begun, and nobody follows it: its entity will, if it is there.

        Intents are left oldest first. An entity has one, unless the disk refused to close it.
        """
        if (older := self._left.get(intent.entity)) is not None:
            self.close(turn, older[0])
        self._left[intent.entity] = intent, step, settled_at
        self._timers.set(("left", intent.entity), settled_at)

    def take_up(self, row: EntityState, now: int) -> None:
        """Follow the step that was left on this entity: its outcome is unknown until it is read."""
        if row.id not in self._left:
            return
        intent, step, settled_at = self._left.pop(row.id)
        self._timers.drop(("left", row.id))
        row.work.begin(StepRun(
            intent, step, None, settled_at, Phase.READING,
            error=f"{step.path}: was interrupted, and its outcome is not known", enrolled=True,
        ))  # fmt: skip
        for change in step.changes:
            row.belief.forget(change.variable, now)

    def give_up(self, turn: Turn, entity: EntityId) -> None:
        """The entity did not come back, and the step that was left on it has no effect any more."""
        intent, *_ = self._left.pop(entity)
        self.close(turn, intent)

    def retire(self, turn: Turn, row: EntityState) -> None:
        """The entity is gone; a step that was called may yet take effect, and is not forgotten."""
        stepping = row.work.stepping
        if stepping is None:
            return
        if stepping.call is not None:
            self._calls.cancel(turn, stepping.call)
        self._calls.give_back(row.id, stepping.step)
        if stepping.begun:
            self.leave(turn, stepping.intent, stepping.step, stepping.settled_at)
        else:
            self.close(turn, stepping.intent, begun=False)

    def left(self, entity: EntityId) -> bool:
        """Whether a step was left on this entity that may yet take effect."""
        return entity in self._left

    def close(self, turn: Turn, intent: Intent, *, begun: bool = True) -> None:
        """This intent is over, or its module is gone: nobody waits for its outcome."""
        turn.effects.append(Write(self._tickets(None), (CloseIntent(intent.id, begun),)))

    def written(self, row: EntityState) -> None:
        """The intent is durable: once it is decided that the step is still wanted, go."""
        row.work.enter(Phase.WRITTEN)

    def fault(self, row: EntityState, now: int) -> str | None:
        """Why a step is not called though its intent is durable; None: it is to be called."""
        stepping = row.work.stepping
        assert stepping is not None
        if first_step(row) is not stepping.step:
            return "not started: another part comes first now"
        if (text := contested(row)) is not None:
            return f"not started: {text}"
        if (text := self._looks.unserved(stepping.step)) is not None:
            return f"not started: {text}"
        return _TOO_LATE if stepping.deadline_at <= now else None

    def go(self, turn: Turn, row: EntityState, node: EntityState | None) -> Intent:
        """Act on a durable intent; returns it."""
        stepping = row.work.enter(Phase.CALLED)
        stepping.call = self._calls.ask(
            turn, row, node, stepping.step, Work.STEP,
            deadline_at=stepping.deadline_at, intent=stepping.intent,
        )  # fmt: skip
        return stepping.intent

    def stop(self, turn: Turn, row: EntityState) -> None:
        """Tell a step under way, once, that something else is desired; it ends within its limits.

        What it comes to then is no failure of it.
        """
        stepping = row.work.stepping
        assert stepping is not None
        pending = None if stepping.call is None else self._calls.get(stepping.call)
        if stepping.call is not None and pending is not None:
            stepping.unwanted = True
            turn.effects.append(StopStep(stepping.call, pending.part.module, pending.process))

    def progressed(self, turn: Turn, row: EntityState, event: Progressed) -> None:
        """A step says how far it is."""
        if row.work.stepping is not None and row.work.stepping.call == event.call:
            row.work.stepping.progress = event.text, event.done
            turn.touch(row.id)

    def withdraw(self, turn: Turn, row: EntityState, outcome: str) -> None:
        """Give up a durable intent that was not acted on yet."""
        assert row.work.stepping is not None
        if outcome == _TOO_LATE:
            self._put_off(turn, row, f"{row.work.stepping.step.path}: {outcome}")
        self._close(turn, row, outcome)

    def unwritten(self, turn: Turn, row: EntityState, text: str) -> None:
        """The intent could not be made durable, so there is no effect either."""
        assert row.work.stepping is not None
        self._put_off(turn, row, text)
        self._note(row, Tried(row.work.stepping.step.path, turn.now, text))
        self._calls.give_back(row.id, row.work.stepping.step)
        row.work.end()
        turn.touch(row.id)

    def ended(self, turn: Turn, row: EntityState) -> None:
        """The step returned, which says nothing of what came of it."""
        stepping = row.work.stepping
        assert stepping is not None
        for change in stepping.step.changes:
            row.expect(change.variable, change.target, stepping.step.module, turn.now)
        self._read_from_now(turn, row, stepping, turn.now + stepping.step.late_ms * MS)

    def failed(self, turn: Turn, row: EntityState, text: str, *, refused: bool) -> None:
        """The step failed; where the device refused it, that is known to be all."""
        stepping = row.work.stepping
        assert stepping is not None
        stepping.error = f"{stepping.step.path}: {text}"
        changed = {change.variable for change in stepping.step.changes}
        self._looks.schedule_others(row, changed, turn.now)
        if refused:
            if not stepping.unwanted:
                self._bar(turn, row, stepping.start, stepping.error)
            stepping.refused = True
            if stepping.step.disruptive:
                row.work.harmless = HarmlessStep(stepping.intent)
            self._close(turn, row, text)
            return
        for change in stepping.step.changes:
            row.belief.forget(change.variable, turn.now)
        settled_at = stepping.settled_at
        if stepping.step.ends_with_call:
            settled_at = turn.now + stepping.step.late_ms * MS
        self._read_from_now(turn, row, stepping, settled_at)

    def timed_out(self, turn: Turn, row: EntityState, pending: Pending) -> None:
        """Nobody answered in time: what may be inferred is inferred, and looked at first."""
        step, terms = pending.part, self._policies.terms(row.id, pending.part)
        self.failed(turn, row, f"no answer within {span(terms.within_ms)}", refused=False)
        if isinstance(step, Step) and terms.fails_to is not None:
            first = step.changes[0].variable
            row.belief.learn(first, Fact(terms.fails_to, step.module, Method.INFERRED, turn.now, 0))

    def review(self, turn: Turn, row: EntityState, domain: Domain, state: int) -> None:
        """Whether the outcome of the step under way has been read, and what it was.

        It was read when a look begun after the intent finds the step's result, or one begun after
        its longest late effect finds anything else.
        """
        stepping = row.work.stepping
        if stepping is None or stepping.phase is not Phase.READING:
            return
        due = results(stepping.step)
        if all(found(row, change, stepping.intent.began_at) for change in due):
            self._looks.usual.took(stepping.step.path, turn.now - stepping.intent.began_at)
            row.attempts.absolve()
            row.attempts.succeed(stepping.step.path)
            self._note(row, Tried(stepping.step.path, turn.now, "done", worked=True))
            if stepping.error is not None:
                # It was so before, perhaps: what did not return may still be on its way.
                row.work.unsettled = stepping.step.path, stepping.settled_at
            if stepping.step.enrols and not stepping.enrolled:
                row.work.booted_at = turn.now
                row.work.booted_surely = stepping.seen_ns >= SURE_NS
            self._drop(turn, row)
        elif turn.now >= stepping.settled_at and any(
            is_over(row, change, stepping, domain, state) for change in due
        ):
            start = None if stepping.start is None else state
            error = stepping.error or without_effect(row, stepping.step, due)
            if not stepping.unwanted:
                self._bar(turn, row, start, error)
            if changed_nothing(row, stepping):
                row.work.harmless = HarmlessStep(stepping.intent, stepping.settled_at)
            self._close(turn, row, error.removeprefix(f"{stepping.step.path}: "))
        else:
            self._read_again(turn, row, stepping, domain)

    def _read_from_now(
        self, turn: Turn, row: EntityState, stepping: StepRun, settled_at: int
    ) -> None:
        row.work.enter(Phase.READING).call = None
        stepping.settled_at = min(stepping.settled_at, settled_at)
        turn.touch(row.id)

    def _read_again(self, turn: Turn, row: EntityState, stepping: StepRun, domain: Domain) -> None:
        changed = {change.variable for change in stepping.step.changes}
        for name in tuple(changed):
            changed |= needed(domain, name)
        again_at, unserved_at = turn.now + READ_AGAIN_NS, turn.now + UNSERVED_AGAIN_NS
        if turn.now < stepping.settled_at:
            again_at = min(again_at, stepping.settled_at)
            unserved_at = min(unserved_at, stepping.settled_at)
        is_coming, wanted = False, list[int]()
        for look in domain.looks:
            # To hear from an agent is to wait, from when nothing else is left to do.
            if look.at not in changed or not self._side.runs(look) or look.module == SYNC:
                continue
            fact = row.belief.known.get(look.at)
            never_read = fact is None or fact.at <= stepping.intent.began_at
            due_at = self._looks.schedule(row, look, turn.now if never_read else again_at)
            if self._looks.can(look):
                wanted.append(due_at)
            is_coming = is_coming or self._looks.is_coming(row, look)
        if not is_coming:  # Else its answer has this decided again, however long its line is.
            at = max(again_at, min(wanted, default=unserved_at))
            self._timers.soonest(("decide", row.id), at)

    def _bar(self, turn: Turn, row: EntityState, start: int | None, error: str) -> None:
        """Not this step from this start again, until its time to be tried again comes."""
        assert row.work.stepping is not None
        step, began = row.work.stepping.step, row.work.stepping.start
        policy = self._policies.terms(row.id, step).policy
        failures = row.attempts.fail(step.path, error, policy)
        if start is not None:
            wait_ns = policy.wait_ms(failures, self._side.draw()) * MS
            # Given up, it is not taken where it began either: another step may lead back there.
            also = {began} if policy.gives_up(failures) and began is not None else set[int]()
            for one in sorted({start} | also):
                row.attempts.bar(one, step.path, turn.now + wait_ns, turn.now)

    def _note(self, row: EntityState, tried: Tried) -> None:
        row.attempts.note(tried)
        self.outcomes[tried.path, tried.worked] += 1

    def _settled_at(self, intent: Intent, step: Step) -> int:
        within_ms = self._policies.terms(intent.entity, step).within_ms
        return intent.began_at + (within_ms + step.late_ms) * MS

    def _put_off(self, turn: Turn, row: EntityState, error: str) -> None:
        """The disk, not the step, is at fault: that says nothing of the device."""
        stepping = row.work.stepping
        assert stepping is not None
        row.attempts.blame(stepping.step.path, error)
        if stepping.start is not None:
            row.attempts.bar(stepping.start, stepping.step.path, turn.now + BACKOFF_NS, turn.now)

    def _close(self, turn: Turn, row: EntityState, outcome: str) -> None:
        assert row.work.stepping is not None
        self._note(row, Tried(row.work.stepping.step.path, turn.now, outcome))
        self._drop(turn, row)
        turn.dirty.add(row.id)

    def _drop(self, turn: Turn, row: EntityState) -> None:
        """The step under way is over."""
        stepping = row.work.stepping
        assert stepping is not None
        self.close(turn, stepping.intent, begun=stepping.begun and not stepping.refused)
        self._calls.give_back(row.id, stepping.step)
        row.work.end()
        turn.changed.add(row.id)


def first_step(row: EntityState) -> Step | None:
    """The step that the present plan begins with; None where it begins with none."""
    if (
        isinstance(row.stance.plan, Chain)
        and row.stance.plan.links
        and isinstance(row.stance.plan.links[0], Do)
    ):
        return row.stance.plan.links[0].step
    return None
