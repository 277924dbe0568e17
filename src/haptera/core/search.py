"""The cheapest way from a state to a goal: always go on from the cheapest state found so far."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from haptera.core.knowledge import Domain
from haptera.core.word import Grounds, Move, strip

# States that one search goes on from before it gives up: some 50 ms with a dozen variables.
EXPANSIONS_MAX: Final = 4_000

UNREACHED: Final = float("inf")

Came = dict[int, tuple[int, Move]]


@dataclass(frozen=True, slots=True)
class Scope:
    """What of a class a goal depends on: whatever is outside neither helps nor hinders."""

    wanted: int
    within: int
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Route:
    """The cheapest moves to the goal, and the root that they lead from."""

    root: int
    moves: tuple[Move, ...]
    cost: int
    expanded: int


@dataclass(frozen=True, slots=True)
class Walled:
    """There is no route: these are all the states within reach."""

    reached: tuple[int, ...]

    @property
    def expanded(self) -> int:
        return len(self.reached)


@dataclass(frozen=True, slots=True)
class Spent:
    """No route among as many states as the budget allowed."""

    expanded: int


def scope_of(domain: Domain, goal: Mapping[str, str], moves: Sequence[Move]) -> Scope:
    """The closure of what the goal's variables depend on, by conditions, changes and looks."""
    within, before = sum(domain.fields[name].span for name in goal), -1
    while within != before:
        before = within
        for move in moves:
            if move.touches & within:
                within |= move.reads
        for one in domain.grounds:
            if one.known & within:
                within |= one.reads
    return Scope(
        domain.wanted(goal),
        within,
        tuple(move for move in moves if move.touches & within),
    )


def search(
    scope: Scope,
    roots: Iterable[int],
    *,
    budget: int,
    barred: frozenset[str] = frozenset(),
) -> Route | Walled | Spent:
    """The cheapest route from one of the roots; `barred` parts are not its first.

    Ties go to what was found first, so by the order of roots and moves.
    """
    best = dict.fromkeys((root & scope.within for root in roots), 0)
    came: Came = {}
    queue = [(0, number, root) for number, root in enumerate(best)]
    pushed = len(queue)
    table = _table(scope)
    opening = [row for row in table if row[-1].part.path not in barred]
    reached: list[int] = []
    while queue:
        cost, _, state = heappop(queue)
        if cost > best[state]:
            continue
        if len(reached) == budget:
            return Spent(budget)
        reached.append(state)
        if state & scope.wanted == scope.wanted:
            return _route(came, state, cost, len(reached))
        for forbidden, keep, put, more, upset, move in table if cost else opening:
            if state & forbidden:
                continue
            after = strip(state & keep | put, upset)
            if cost + more < best.get(after, UNREACHED):
                best[after] = cost + more
                came[after] = (state, move)
                heappush(queue, (cost + more, pushed, after))
                pushed += 1
    return Walled(tuple(reached))


Row = tuple[int, int, int, int, tuple[Grounds, ...], Move]


def _table(scope: Scope) -> list[Row]:
    """Moves as plain tuples: the loop over them is where a search spends its time."""
    return [
        (
            move.forbidden,
            move.keep,
            move.put,
            move.part.cost,
            tuple(one for one in move.upsets if one.known & scope.within),
            move,
        )
        for move in scope.moves
    ]


def _route(came: Came, state: int, cost: int, expanded: int) -> Route:
    moves = []
    while state in came:
        state, move = came[state]
        moves.append(move)
    return Route(state, tuple(reversed(moves)), cost, expanded)
