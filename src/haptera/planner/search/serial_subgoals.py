"""Serializable subgoals: a goal in stages, done one after the other; the next operator at once.

Korf, "Planning as Search: A Quantitative Approach", Artificial Intelligence 33, 1987.

A stage is what moves change together. What it costs in a state is counted as though whatever its
moves ask of other stages were so; all stages together never cost more than the goal. They cost
just as much where each move that is cheapest so asks of another stage nothing, or exactly that it
is done, and nothing that is known rests on a stage that is not: one of these waits for none, its
moves take nothing from the others, and once all are done the goal is met. Then each cheapest move
that can be made is the first of a cheapest route, and any other is not.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import reduce
from graphlib import CycleError, TopologicalSorter
from itertools import product
from math import prod
from operator import or_
from typing import Final

from haptera.planner.domain.bitstate import Field, Support, is_grounded
from haptera.planner.domain.successors import OperatorRow
from haptera.planner.domain.task import Task, joined
from haptera.planner.search.dijkstra import UNREACHED, Before, distances

# Moves tried to work out the stages of a goal: some 4 ms.
TRIES_MAX: Final = 20_000


class End(IntEnum):
    """Reasons for a state without a move: it meets the goal, nothing leads on, or it is not known.

    Below zero, so that it can stand in place of a move's number.
    """

    MET = -1
    WALLED = -2
    UNKNOWN = -3


# Moves with their places in the order of all.
Numbered = tuple[tuple[int, OperatorRow], ...]
# Such a move, with the states that it leads on from if others are as it asks, and where to.
Way = tuple[int, OperatorRow, list[tuple[int, int]]]


@dataclass(frozen=True, slots=True, eq=False)
class Subgoal:
    """What is next for some variables, by their states; it is done where no `missing` bit is set.

    `rows` holds the cheapest moves from a state, in order: none of them where nothing leads on, no
    entry where that depends on other stages. `resting` are the known bits of others that may rest
    on it.
    """

    fields: tuple[Field, ...]
    whole: int
    missing: int
    resting: int
    rows: Mapping[int, Numbered]


def next_row(stages: Sequence[Subgoal], state: int) -> OperatorRow | End:
    """The first move from a state, where these are all stages of a goal."""
    todo = [stage for stage in stages if state & stage.missing]
    each = [stage.rows.get(state & stage.whole) for stage in todo]
    if not todo:
        return End.MET if stages else End.UNKNOWN
    if () in each:
        return End.WALLED
    if None in each or any(state & stage.resting for stage in todo):
        return End.UNKNOWN
    open_ones = [one for rows in each if rows for one in rows if not state & one[1][0]]
    assert open_ones, "of stages that are not done, one waits for none of the others"
    _, row = min(open_ones)
    return row


def subgoals_of(task: Task, states_max: int) -> tuple[Subgoal, ...]:
    """The stages of a goal; none where they have too many states, or wait for each other."""
    if any(field.touched & task.within for field in task.fields):
        return ()  # Doubts are for searches.
    spans = [field.whole for field in task.fields]
    spans = joined(spans + [row[-1].touches & task.within for row in task.rows])
    drafts = [_Draft(task, span, [one for one in spans if one != span]) for span in spans]
    if sum(draft.count for draft in drafts) > states_max:
        return ()
    if sum(draft.tries for draft in drafts) > TRIES_MAX:
        return ()
    stages = tuple(draft.stage() for draft in drafts)
    return () if _wait_for_each_other(stages) else stages


def _wait_for_each_other(stages: tuple[Subgoal, ...]) -> bool:
    asked = {
        stage.whole: reduce(or_, (row[0] for rows in stage.rows.values() for _, row in rows), 0)
        for stage in stages
    }
    waits = {
        whole: [other for other in asked if other != whole and bits & other]
        for whole, bits in asked.items()
    }
    try:
        TopologicalSorter(waits).prepare()
    except CycleError:
        return True
    return False


class _Draft:
    """One stage as it is worked out; `others` are the bits of the other stages."""

    def __init__(self, task: Task, whole: int, others: list[int]) -> None:
        self._task = task
        self._whole = whole
        self._missing = whole & ~task.allowed
        self._others = others
        self._fields = tuple(field for field in task.fields if field.whole & whole)
        self._rows = [one for one in enumerate(task.rows) if one[1][-1].touches & whole]
        self._grounds = [(one, one.loose) for one in task.grounds if one.known & whole]
        self.count = prod(2 * field.width + 1 for field in self._fields)
        self.tries = self.count * len(self._rows)

    def stage(self) -> Subgoal:
        resting = reduce(or_, map(self._resting, self._task.grounds), 0) & ~self._whole
        rows = dict(self._cheapest())
        return Subgoal(self._fields, self._whole, self._missing, resting, rows)

    def _resting(self, one: Support) -> int:
        """Values that may rest on the stage while it is not done."""
        if not one.reads & self._whole:
            return 0
        looks = (yields for yields, closed in one.looks if self._missing & ~closed)
        return reduce(or_, looks, 0) & one.loose

    def _cheapest(self) -> Iterator[tuple[int, Numbered]]:
        states = [sum(bits) for bits in product(*(field.bits for field in self._fields))]
        ways = [(number, row, leads(states, row)) for number, row in self._rows]
        sure = {state for state in states if not state & self._missing}
        costs = distances(sure, self._before(states, ways))
        least: dict[int, list[tuple[int, OperatorRow, int]]] = {state: [] for state in costs}
        for number, row, pairs in ways:
            for state, after in pairs:
                if costs.get(after, UNREACHED) + row[3] == costs.get(state):
                    least[state].append((number, row, after))
        yield from ((state, ()) for state in states if state not in costs)
        # The nearest first: a move is sure only if what comes after it is.
        for state in sorted(costs.keys() - sure, key=lambda one: (costs[one], one)):
            some = least[state]
            if some and all(after in sure and self._lasts(row, after) for _, row, after in some):
                sure.add(state)
                yield state, tuple((number, row) for number, row, _ in some)

    def _before(self, states: Iterable[int], ways: Iterable[Way]) -> Before:
        """From where one comes to each; what can be stripped is, for nothing."""
        before: dict[int, list[tuple[int, int]]] = {state: [] for state in states}
        for _, row, pairs in ways:
            for state, after in pairs:
                before[after].append((state, row[3]))
        for one, loose in self._grounds:
            for state in before:
                if held := state & loose:
                    before[state ^ held | held << one.width].append((state, 0))
        return before

    def _lasts(self, row: OperatorRow, after: int) -> bool:
        """Whether a move asks just for stages that are done, and these hold what it brings."""
        forbidden = row[0]
        asked = [one for one in self._others if one & forbidden]
        if any(one & forbidden != one & ~self._task.allowed for one in asked):
            return False
        settled = reduce(or_, asked, self._whole)
        after |= self._task.within & ~self._whole & ~forbidden  # Others may be any of these.
        return all(
            not (held := after & loose)
            or (not one.reads & self._task.within & ~settled and is_grounded(after, one, held))
            for one, loose in self._grounds
        )


def leads(states: Iterable[int], row: OperatorRow) -> list[tuple[int, int]]:
    """From which of these states a row leads on, each with what it makes of it, not stripped."""
    forbidden, keep, put, *_ = row
    return [(state, state & keep | put) for state in states if not state & forbidden]
