"""A* search: the cheapest plan from a state to a goal, by an admissible heuristic.

Hart, Nilsson, Raphael, "A Formal Basis for the Heuristic Determination of Minimum Cost Paths",
IEEE Trans. SSC 4(2), 1968. Of equal plans the one that is first in the order of operators wins,
so that the answer does not depend on the heuristic.
"""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from haptera.planner.domain.bitstate import Operator, strip
from haptera.planner.domain.task import Task
from haptera.planner.search.dijkstra import UNREACHED
from haptera.planner.search.search_budget import SearchBudget

# What coming to a state costs, in moves tried.
COMING: Final = 15
# States that a first try, which trusts the bound, may find to lead nowhere.
DEAD_ENDS_MAX: Final = 16

# Where a move leads, what it costs, and the move.
Way = tuple[int, int, Operator]
# What is left to pay from a state, at the least; with a budget that is spent, anything less.
Bound = Callable[[int, SearchBudget], float]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Moves to the goal; `optimal` where it is proven that none cost less."""

    moves: tuple[Operator, ...]
    cost: int
    expanded: int
    optimal: bool = True


@dataclass(frozen=True, slots=True)
class Unsolvable:
    """There is no route: these are the states come to, all that are there if no bound was set."""

    reached: tuple[int, ...]
    expanded: int


@dataclass(frozen=True, slots=True)
class OutOfBudget:
    """No route among as many states as the budget was for."""

    expanded: int


Found = SearchResult | Unsolvable | OutOfBudget


def unbounded(_state: int, _budget: SearchBudget) -> float:
    """The bound that rules out nothing."""
    return 0


def search(
    task: Task,
    start: int,
    bound: Bound,
    budget: SearchBudget,
    *,
    barred: frozenset[str] = frozenset(),
) -> Found:
    """The cheapest route from a state; no barred part is its first.

    Of several, the one whose first move comes first in the task, then its second, and so on. It
    is the same whatever the bound, and what is left of it is the route from where it has come to.
    """
    begun = AStar(task, start, bound, budget, barred)
    return begun.straight() or begun.best()


class AStar:
    """What is found out on the way: what states cost to come to, and cost from there at least."""

    def __init__(
        self,
        task: Task,
        start: int,
        bound: Bound = unbounded,
        budget: SearchBudget | None = None,
        barred: frozenset[str] = frozenset(),
    ) -> None:
        self._task = task
        self._budget = SearchBudget() if budget is None else budget
        # For the proof, and as many again to find the first of the routes that it allows.
        self._states_max = self._budget.states
        self._root = start & task.within
        self._bound = bound
        self._barred = barred
        self._costs: dict[int, int] = {self._root: 0}
        self._bounds: dict[int, float] = {}
        self._ways: dict[int, list[Way]] = {}
        self._expanded = 0

    def straight(self) -> SearchResult | None:
        """The route that costs no more than the bound says, if it is found at once."""
        least = self._left(self._root)
        moves = self._first(int(least), DEAD_ENDS_MAX) if least < UNREACHED else None
        return None if moves is None else SearchResult(moves, int(least), self._expanded)

    def best(self) -> Found:
        """Always go on from the state that promises most."""
        costs, bounds = self._costs, self._bounds
        bound, budget = self._bound, self._budget
        queue = [(self._left(self._root), 0, self._root)]
        while queue and queue[0][0] < UNREACHED:
            _, paid, state = heappop(queue)
            cost = -paid  # Of two that promise the same, the one that has come farther is first.
            if cost > costs[state]:
                continue
            if self._budget.is_spent:
                return OutOfBudget(self._expanded)
            self._expanded += 1
            self._budget.spend(0, states=1)
            if self._met(state):
                moves = self._first(cost, self._states_max)
                if moves is None:
                    return OutOfBudget(self._expanded)
                return SearchResult(moves, cost, self._expanded)
            for after, more, _ in self._onward(state):
                come = cost + more
                if come < costs.get(after, UNREACHED):
                    costs[after] = come
                    left = bounds.get(after)
                    if left is None:
                        left = bounds[after] = bound(after, budget)
                    heappush(queue, (come + left, -come, after))
        return Unsolvable(tuple(self._costs), self._expanded)

    def _first(self, cost: int, dead_ends_max: int) -> tuple[Operator, ...] | None:
        """The first of the routes of this cost, where none costs less and there is one.

        Goes down from the root by the first row that may do, and back up where none does.
        """
        vain: dict[int, int] = {}  # From these states it costs more than this.
        moves: list[Operator] = []
        trail = [(self._root, cost, iter(self._onward(self._root)))]
        while trail and len(vain) <= dead_ends_max and self._budget.work > 0:
            state, left, afters = trail[-1]
            if self._met(state):
                self._expanded += len(trail)
                return tuple(moves)
            for after, more, move in afters:
                rest = left - more
                in_time = cost - rest <= self._costs.get(after, UNREACHED)
                if in_time and self._left(after) <= rest > vain.get(after, -1):
                    moves.append(move)
                    trail.append((after, rest, iter(self._onward(after))))
                    break
            else:
                vain[state] = left
                self._budget.spend(0, states=1)
                trail.pop()
                del moves[-1:]
        self._expanded += len(vain)
        return None

    def _onward(self, state: int) -> list[Way]:
        """The ways on from a state, worked out once; from the root by nothing barred."""
        if state not in self._ways:
            rows = self._task.openings.rows(state)
            if state == self._root and self._barred:
                rows = [row for row in rows if row[-1].part.path not in self._barred]
            self._ways[state] = [
                (strip(state & keep | put, upsets) if upsets else state & keep | put, cost, move)
                for _, keep, put, cost, upsets, move in rows
            ]
            self._budget.spend(len(self._task.rows) + COMING * len(rows))
        return self._ways[state]

    def _met(self, state: int) -> bool:
        return state & self._task.wanted == self._task.wanted

    def _left(self, state: int) -> float:
        if state not in self._bounds:
            self._bounds[state] = self._bound(state, self._budget)
        return self._bounds[state]
