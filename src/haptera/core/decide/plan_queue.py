"""Plans that the core cannot afford: each question sought once, one at a time, and its answer kept.

The core goes on meanwhile; the asking entity is decided on again when the answer is there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from haptera.core.decide.backlog import PLANNED
from haptera.core.state.limits import ANSWER_GRACE_NS, MS, S
from haptera.core.state.side import Side
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.model.chain import Chain, NoChain, Reason, ReasonKind, gives_up
from haptera.model.entity import EntityId
from haptera.model.events import PlanFailed, PlanFound
from haptera.model.policy import RESTARTING
from haptera.planner.domain.domain import Domain
from haptera.planner.plan_query import PlanQuery, search_for, understood

# How long a worker may search for a plan before it is taken to hang; when a search that was given
# up is made once more, and when a question is asked again for which there was no room.
SEARCH_WITHIN_NS: Final = 300 * S
SEARCH_AGAIN_NS: Final = 600 * S
SEARCH_QUEUE_AGAIN_NS: Final = 30 * S

# Questions that are being sought or wait for their turn, and answers kept.
QUESTIONS_MAX: Final = 256
ANSWERS_MAX: Final = 4_096
# How many workers may die of a question.
DEATHS_MAX: Final = 2


# An entity, or the ticket of changes that somebody considers.
Asker = EntityId | int


@dataclass(frozen=True, slots=True)
class Sought:
    """What came of a question; one that was given up is sought anew from `again_at` on."""

    answer: Chain | NoChain
    again_at: int | None = None


@dataclass(slots=True)
class QueuedQuery:
    """Who asks, how many workers died of it, and how the last one did."""

    askers: dict[Asker, None] = field(default_factory=dict)
    deaths: int = 0
    error: str | None = None


class PlanQueue:
    """What is asked of the worker, in the order of asking; at most one search is under way."""

    def __init__(self, side: Side, timers: Timers) -> None:
        self._side = side
        self._timers = timers
        self._verdicts: dict[PlanQuery, Sought] = {}
        self._questions: dict[PlanQuery, QueuedQuery] = {}
        self._asked: dict[Asker, dict[PlanQuery, None]] = {}
        self._under_way: tuple[int, PlanQuery] | None = None
        self._count = 0
        self._deaths = 0
        self._rests_until = 0

    def ask(self, turn: Turn, asker: Asker, sought: PlanQuery) -> Sought | None:
        """What came of this; None where it is being sought, and the asker waits for it."""
        verdict = self._verdicts.get(sought)
        if verdict is not None and (verdict.again_at is None or turn.now < verdict.again_at):
            return verdict
        asked = self._asked.get(asker, {})
        if sought in asked:
            return None
        if isinstance(asker, EntityId):
            self.release(asker)  # It has one plan.
        if sought not in self._questions and len(self._questions) >= QUESTIONS_MAX:
            text = f"{QUESTIONS_MAX} other plans are queued already"
            return _given_up(text, turn.now + SEARCH_QUEUE_AGAIN_NS)
        self._questions.setdefault(sought, QueuedQuery()).askers[asker] = None
        self._asked.setdefault(asker, {})[sought] = None
        return None

    def waits(self, asker: Asker) -> bool:
        """Whether something that it asked is being sought."""
        return asker in self._asked

    def doing(self, asker: EntityId) -> str:
        """What is done about its plan, in words."""
        errors = (self._questions[sought].error for sought in self._asked.get(asker, ()))
        error = next(errors, None)
        return PLANNED if error is None else f"is being planned again: {error}"

    def release(self, asker: Asker) -> None:
        """It asks no more; what nobody asks any more is not sought, unless it is already."""
        for sought in self._asked.pop(asker, ()):
            question = self._questions[sought]
            del question.askers[asker]
            if not question.askers and not self._seeks(sought):
                del self._questions[sought]

    def relent(self, domain: Domain) -> None:
        """A person asks: what was given up in this class may be sought anew at once."""
        self._verdicts = {
            sought: verdict
            for sought, verdict in self._verdicts.items()
            if verdict.again_at is None or sought.domain is not domain
        }

    def advance(self, turn: Turn) -> None:
        """Have the next question sought, if there is one and it may be."""
        if self._under_way is not None or not self._questions:
            return
        if turn.now < self._rests_until:
            self._timers.set(("search",), self._rests_until)
            return
        self._count += 1
        sought = next(iter(self._questions))
        self._under_way = self._count, sought
        deadline_at = turn.now + SEARCH_WITHIN_NS
        self._timers.set(("search",), deadline_at + ANSWER_GRACE_NS)
        turn.effects.append(search_for(sought, self._count, deadline_at))

    def handle(self, turn: Turn, event: PlanFound | PlanFailed) -> None:
        """What a worker answers, or that it cannot; the answer to a search that is over is none."""
        if self._under_way is None or self._under_way[0] != event.search:
            return
        _, sought = self._under_way
        if isinstance(event, PlanFailed):
            self._fail(turn, sought, event.text)
        elif (answer := understood(sought, event.answer)) is None:
            self._fail(turn, sought, "answered with a plan that does not start from this state")
        else:
            self._deaths = 0
            again_at = turn.now + SEARCH_AGAIN_NS if gives_up(answer) else None
            self._settle(turn, sought, self._questions.pop(sought), Sought(answer, again_at))

    def wake(self, turn: Turn) -> None:
        """A search is long overdue, and its worker has not said so; or a rest is over."""
        if self._under_way is not None:
            self._fail(turn, self._under_way[1], f"gave no answer for {SEARCH_WITHIN_NS // S} s")

    def check(self) -> None:
        """Assert what must hold between any two calls."""
        assert len(self._questions) <= QUESTIONS_MAX
        for asker, asked in self._asked.items():
            assert asked, asker
            assert all(asker in self._questions[sought].askers for sought in asked), asker
        for sought, question in self._questions.items():
            assert question.askers or self._seeks(sought)

    def _seeks(self, sought: PlanQuery) -> bool:
        return self._under_way is not None and self._under_way[1] == sought

    def _fail(self, turn: Turn, sought: PlanQuery, text: str) -> None:
        """Try again after a rest, and after the other questions, unless workers die of this one."""
        self._under_way = None
        self._timers.drop(("search",))
        self._deaths += 1
        self._rests_until = turn.now + RESTARTING.wait_ms(self._deaths, self._side.draw()) * MS
        question = self._questions.pop(sought)
        question.deaths += 1
        question.error = f"the planner's worker {text}"
        if question.deaths >= DEATHS_MAX:
            text = f"gave up after {question.deaths} tries: {question.error}"
            self._settle(turn, sought, question, _given_up(text, turn.now + SEARCH_AGAIN_NS))
        elif question.askers:
            self._questions[sought] = question
            turn.dirty.update(_entities(question))

    def _settle(self, turn: Turn, sought: PlanQuery, question: QueuedQuery, found: Sought) -> None:
        """Keep the answer, and have all decided on again who asked."""
        self._under_way = None
        self._timers.drop(("search",))
        while len(self._verdicts) >= ANSWERS_MAX:
            del self._verdicts[next(iter(self._verdicts))]
        self._verdicts[sought] = found
        for asker in question.askers:
            del self._asked[asker][sought]
            if not self._asked[asker]:
                del self._asked[asker]
        turn.dirty.update(_entities(question))


def _entities(question: QueuedQuery) -> Iterator[EntityId]:
    """Of those who ask, the ones that are to be decided on."""
    return (asker for asker in question.askers if isinstance(asker, EntityId))


def _given_up(text: str, again_at: int) -> Sought:
    return Sought(NoChain(Reason(ReasonKind.BUDGET, None, text), 0), again_at)
