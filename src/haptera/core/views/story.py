"""The story of one entity: what happened, what was decided on it, and what came of that."""

from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from haptera.core.state.entity.attempts import Oscillation
from haptera.core.state.entity.decision import (
    Assent,
    Awaited,
    Awaits,
    Decision,
    Denial,
    EntityClaim,
    HelloDue,
    HelloMissed,
    Next,
    Stale,
    Wait,
    Withdraw,
)
from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.model.answers.story import DecisionView, StoryView
from haptera.model.entity import EntityId
from haptera.model.parts import Look, Step
from haptera.model.walltime import duration

# Decisions kept, of all entities together: some megabytes. Of one entity, so many are shown.
STORY_MAX: Final = 8_192
SHOWN_MAX: Final = 64


class StoryEntry(NamedTuple):
    """A decision that differs from the one before it, and what was known of its entity then."""

    at: int
    entity: EntityId
    decision: Decision
    known: tuple[tuple[str, str], ...]


class Story:
    """The decisions of one side in their order; the oldest are forgotten."""

    def __init__(self) -> None:
        self._entries: deque[StoryEntry] = deque(maxlen=STORY_MAX)

    def note(self, now: int, row: EntityState, decision: Decision) -> None:
        """A decision is made on this entity, perhaps the same as before."""
        before = row.stance.decision
        if before is decision or (before is not None and _is_alike(before, decision)):
            return
        known = tuple([(name, row.value(name, fact)) for name, fact in row.belief.known.items()])
        self._entries.append(StoryEntry(now, row.id, decision, known))

    def of(self, row: EntityState, now: int) -> StoryView:
        """The last decisions on one entity, each after what has happened since the one before."""
        mine = [one for one in self._entries if one.entity == row.id]
        return StoryView(str(row.id), [*_told(row, mine, now)][-SHOWN_MAX:])


def _is_alike(before: Decision, decision: Decision) -> bool:
    """True of decisions that differ in nothing but when to decide again."""
    return (
        before.status == decision.status
        and before.next == decision.next
        and before.claims == decision.claims
        and before.looks == decision.looks
    )


def _told(row: EntityState, entries: list[StoryEntry], now: int) -> Iterator[DecisionView]:
    known: dict[str, str] = {}
    since = -1
    for entry in entries:
        decision, before, known = entry.decision, known, dict(entry.known)
        changed = (one for one in sorted({*before, *known}) if before.get(one) != known.get(one))
        ended = (one for one in row.attempts.tried if since < one.at <= entry.at)
        yield DecisionView(
            ago_ms=(now - entry.at) // MS,
            condition=decision.status.condition,
            next=_next(decision.next, entry.at),
            why=decision.status.why,
            seen={one: known.get(one) for one in changed},
            ended=[f"{one.path}: {one.outcome}" for one in ended],
            claims=[_claim(one) for one in decision.claims],
            looks=[one.path for one in decision.looks],
            wake_in_ms=None if decision.wake_at is None else (decision.wake_at - entry.at) // MS,
            incomplete=decision.incomplete,
        )
        since = entry.at


def _next(part: Next, now: int) -> str:
    match part:
        case Look():
            return f"look: {part.path}"
        case Step():
            return f"step: {part.path}"
        case Withdraw(outcome):
            return f"withdraw: {outcome.removeprefix('not started: ')}"
        case Wait(None):
            return "wait"
        case Wait(on):
            return f"wait for {_awaited(on, now)}"
        case _:
            return "stop the step under way"


def _awaited(on: Awaits | None, now: int) -> str:
    match on:
        case HelloDue(due_at):
            return f"{Awaited.AGENT}, due in {duration((due_at - now) // MS)}"
        case HelloMissed():
            return f"{Awaited.AGENT}: none came in time"
        case Denial(_, again_at):
            return f"the next request for a permit, in {duration((again_at - now) // MS)}"
        case Stale(variables):
            return f"new readings of {', '.join(variables)}"
        case Oscillation():
            return "an end of the oscillation"
        case _:
            return str(on)


def _claim(one: EntityClaim) -> str:
    answer = "granted" if isinstance(one.answer, Assent) else one.answer.why
    return f"{one.kind} ({one.id}): {answer}"
