"""The cheapest way from a state to a goal: always go on from where it seems shortest."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

from haptera.core.estimate import UNREACHED
from haptera.core.scope import Row, Scope
from haptera.core.word import Move, strip

# States that one search goes on from before it gives up.
EXPANSIONS_MAX: Final = 4_000

# What is left to pay from a state, at the least.
Bound = Callable[[int], float]


@dataclass(frozen=True, slots=True)
class Route:
    """The cheapest moves to the goal."""

    moves: tuple[Move, ...]
    cost: int
    expanded: int


@dataclass(frozen=True, slots=True)
class Walled:
    """There is no route: these are the states come to, all that are there if no bound was set."""

    reached: tuple[int, ...]
    expanded: int


@dataclass(frozen=True, slots=True)
class Spent:
    """No route among as many states as the budget allowed."""

    expanded: int


Found = Route | Walled | Spent


def unbounded(_: int) -> float:
    """The bound that rules out nothing."""
    return 0


def search(
    scope: Scope,
    start: int,
    *,
    budget: int,
    bound: Bound = unbounded,
    barred: frozenset[str] = frozenset(),
) -> Found:
    """The cheapest route from a state; no barred part is its first.

    Of several, the one whose first move comes first in the scope, then its second, and so on. It
    is the same whatever the bound, and what is left of it is the route from where it has come to.
    """
    opening = tuple(row for row in scope.rows if row[-1].part.path not in barred)
    return _Search(scope, opening, start & scope.within, bound).run(budget)


@dataclass(slots=True)
class _Search:
    """What is found out on the way: what states cost to come to, and cost from there at least."""

    scope: Scope
    opening: tuple[Row, ...]
    root: int
    bound: Bound
    costs: dict[int, int] = field(default_factory=dict)
    bounds: dict[int, float] = field(default_factory=dict)

    def run(self, budget: int) -> Found:
        self.costs[self.root] = 0
        queue = [(self._left(self.root), 0, self.root)]
        expanded = 0
        while queue and queue[0][0] < UNREACHED:
            _, paid, state = heappop(queue)
            cost = -paid  # Of two that promise the same, the one that has come farther is first.
            if cost > self.costs[state]:
                continue
            if expanded == budget:
                return Spent(expanded)
            expanded += 1
            if self._met(state):
                moves = self._first(cost, budget)
                return Spent(expanded) if moves is None else Route(moves, cost, expanded)
            for after, more, _ in _after(state, self.scope.rows if cost else self.opening):
                if cost + more < self.costs.get(after, UNREACHED):
                    self.costs[after] = cost + more
                    heappush(queue, (cost + more + self._left(after), -cost - more, after))
        return Walled(tuple(self.costs), expanded)

    def _first(self, cost: int, budget: int) -> tuple[Move, ...] | None:
        """The first route of this cost, the lowest; None where it takes more than the budget.

        Goes down from the root by the first row that may do, and back up where none does.
        """
        vain: dict[int, int] = {}  # From these states it costs more than this.
        moves: list[Move] = []
        trail = [(self.root, cost, _after(self.root, self.opening))]
        while not self._met(trail[-1][0]):
            state, left, afters = trail[-1]
            for after, more, move in afters:
                rest = left - more
                on_time = cost - rest <= self.costs.get(after, UNREACHED)
                if on_time and self._left(after) <= rest > vain.get(after, -1):
                    moves.append(move)
                    trail.append((after, rest, _after(after, self.scope.rows)))
                    break
            else:
                vain[state] = left
                if len(vain) > budget:
                    return None
                trail.pop()
                moves.pop()
        return tuple(moves)

    def _met(self, state: int) -> bool:
        return state & self.scope.wanted == self.scope.wanted

    def _left(self, state: int) -> float:
        if state not in self.bounds:
            self.bounds[state] = self.bound(state)
        return self.bounds[state]


def _after(state: int, rows: Iterable[Row]) -> Iterator[tuple[int, int, Move]]:
    """The states that come next, what they cost, and by which move."""
    for forbidden, keep, put, cost, upsets, move in rows:
        if not state & forbidden:
            yield strip(state & keep | put, upsets), cost, move
