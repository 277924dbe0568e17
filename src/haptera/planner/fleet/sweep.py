"""The cheapest way to a goal, from all states that promise the same at once: for parents.

The twin of `a_star.py`: the same route, proven the same way, and several times sooner where
tens of thousands of states are to be gone on from.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from haptera.planner.domain.bitstate import Operator
from haptera.planner.domain.task import Task
from haptera.planner.fleet.bounds import NEVER, Bounds
from haptera.planner.fleet.census import Census, Numbers
from haptera.planner.fleet.packing import Packed, Packing
from haptera.planner.search.a_star import Found, OutOfBudget, SearchResult, Unsolvable
from haptera.planner.search.landmark_heuristic import LandmarkHeuristic
from haptera.planner.search.search_budget import SearchBudget

# Of the states that promise as much as the goal costs a plain search goes on from few, a sweep from
# all: in all from so many times as many at the most.
LAST_MAX: Final = 4
# States that are gone on from together: what is worked out on the way takes some 2 kB each.
TOGETHER_MAX: Final = 16_384

# Of moves from state to state: where each begins, its row, and where it ends, all by numbers.
Ways = tuple[Numbers, Numbers, Numbers]


class Sweep:
    """States by numbers, as they are come to: the root is 0."""

    def __init__(
        self,
        task: Task,
        start: int,
        estimate: LandmarkHeuristic,
        barred: frozenset[str] = frozenset(),
    ) -> None:
        self._task = task
        self._barred = barred
        self._packing = Packing(task)
        estimate(start & task.within, SearchBudget())  # It has met the goal's landmarks then.
        self._bound = Bounds(self._packing, estimate)
        self._row_costs = np.array([row[3] for row in task.rows], np.int32)
        self._census = Census(self._packing.words)
        self._costs = np.zeros(0, np.int32)
        self._bounds = np.zeros(0, np.int32)
        self._done = np.zeros(0, np.bool_)
        self._promising: dict[int, list[Numbers]] = {}
        self._ways: list[Ways] = []
        self._expanded = 0
        self._root = start & task.within
        first = self._numbered(self._packing.pack(self._root))
        self._costs[first] = 0
        self._promise(first)

    def best(self, budget: SearchBudget) -> Found:
        """Go on from all states that promise most, until all that meet the goal so are found.

        What promises less than the goal costs is gone on from by a plain search too: so many states
        the budget is for, that both may prove the same.
        """
        given = budget.states
        while self._promising:
            budget.states = given - self._expanded
            least, goals = min(self._promising), list[Numbers]()
            for numbers in self._due(least):
                if budget.is_spent or self._expanded > LAST_MAX * given:
                    budget.states = 0
                    return OutOfBudget(self._expanded)
                self._expanded += len(numbers)
                budget.spend(len(numbers) * len(self._task.rows))
                met = self._packing.meeting(self._census.states(numbers))
                goals.append(numbers[met])
                self._go_on(numbers[~met])
            if any(map(len, goals)):
                return SearchResult(self._first(np.concatenate(goals)), least, self._expanded)
        return Unsolvable((self._root,), self._expanded)

    def _due(self, promise: int) -> Iterator[Numbers]:
        """The states that promise so much, those too that are come to meanwhile, each once."""
        while promising := self._promising.pop(promise, None):
            numbers = np.unique(np.concatenate(promising))
            numbers = numbers[~self._done[numbers]]
            self._done[numbers] = True
            for first in range(0, len(numbers), TOGETHER_MAX):
                yield numbers[first : first + TOGETHER_MAX]

    def _go_on(self, numbers: Numbers) -> None:
        sources, rows, after = self._packing.onward(self._census.states(numbers))
        begins, rows = numbers[sources], rows.astype(np.int32)
        if self._barred and not self._ways:
            paths = [row[-1].part.path for row in self._task.rows]
            open_ = np.array([path not in self._barred for path in paths])[rows]
            begins, rows, after = begins[open_], rows[open_], after[:, open_]
        ends = self._numbered(after)
        before, costs = self._costs[ends], self._costs[begins] + self._row_costs[rows]
        np.minimum.at(self._costs, ends, costs)
        straight = costs == self._costs[ends]
        self._ways.append((begins[straight], rows[straight], ends[straight]))
        self._promise(np.unique(ends[costs < before]))

    def _promise(self, numbers: Numbers) -> None:
        """Have these gone on from in their turn, unless nothing leads from them to the goal."""
        totals = self._costs[numbers] + self._bounds[numbers]
        for total in np.unique(totals[totals < NEVER]).tolist():
            self._promising.setdefault(total, []).append(numbers[totals == total])

    def _numbered(self, states: Packed) -> Numbers:
        """The numbers of states; of those that are come to for the first time all is noted."""
        known = self._census.count
        numbers = self._census.number(states)
        if self._census.count > len(self._costs):
            more = max(self._census.count, 2 * known) - len(self._costs)
            self._costs = np.pad(self._costs, (0, more), constant_values=NEVER)
            self._bounds = np.pad(self._bounds, (0, more))
            self._done = np.pad(self._done, (0, more))
        fresh = np.arange(known, self._census.count, dtype=np.int32)
        self._bounds[fresh] = self._bound(self._census.states(fresh))
        return numbers

    def _first(self, goals: Numbers) -> tuple[Operator, ...]:
        """The first of the cheapest routes to these, by the order of their rows."""
        begins, rows, ends = (np.concatenate(some) for some in zip(*self._ways, strict=True))
        tight = self._costs[begins] + self._row_costs[rows] == self._costs[ends]
        begins, rows, ends = begins[tight], rows[tight], ends[tight]
        leading = self._leading(goals, begins, ends)
        on = leading[begins] & leading[ends]
        # The lowest row of each state comes last, and stays.
        order = np.flatnonzero(on)[np.argsort(-rows[on], kind="stable")]
        ways = zip(begins[order].tolist(), rows[order].tolist(), ends[order].tolist(), strict=True)
        onward = {begin: (row, end) for begin, row, end in ways}
        moves, at = [], 0
        while at in onward:
            row, at = onward[at]
            moves.append(self._task.rows[row][-1])
        return tuple(moves)

    def _leading(self, goals: Numbers, begins: Numbers, ends: Numbers) -> NDArray[np.bool_]:
        """From which states these ways, none of which is a detour, lead to a goal."""
        leading = np.zeros(len(self._costs), np.bool_)
        leading[goals] = True
        costs = self._costs[begins]
        order = np.argsort(-costs, kind="stable")
        each = np.flatnonzero(np.diff(costs[order])) + 1
        for some in np.split(order, each):
            leading[begins[some][leading[ends[some]]]] = True
        return leading
