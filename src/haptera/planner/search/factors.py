"""Independent factors of a goal, each searched for by itself.

Parts of the goal that share no variable, neither by conditions nor by support: their plans
interleave freely and their costs add up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import merge
from typing import Final

from haptera.planner.domain.bitstate import Operator
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.successors import OperatorRow
from haptera.planner.domain.task import Memory, Task, apart, task_of
from haptera.planner.search.a_star import Found, OutOfBudget, SearchResult, Unsolvable, search
from haptera.planner.search.ff_heuristic import FFHeuristic
from haptera.planner.search.landmark_heuristic import LandmarkHeuristic
from haptera.planner.search.lru import SizedLRU
from haptera.planner.search.policy_cache import STATES_MAX, PolicyCache, next_moves
from haptera.planner.search.policy_rollout import rollout
from haptera.planner.search.search_budget import SearchBudget
from haptera.planner.search.serial_subgoals import End

# Goals of classes that are kept ready: fleets have few.
FACTORS_CACHED_MAX: Final = 256
# The bits of all their rows, at up to three bytes each in the end: some 100 MB.
FACTORS_BITS_MAX: Final = 32_000_000


@dataclass(frozen=True, eq=False)
class Factor:
    """A goal that is searched for in one, where its tables do not tell."""

    task: Task
    states_max: int

    @cached_property
    def estimate(self) -> LandmarkHeuristic:
        """What the goal costs at the least."""
        return LandmarkHeuristic(self.task)

    @cached_property
    def relaxation(self) -> FFHeuristic:
        """What the goal costs at a guess."""
        return FFHeuristic(self.task)

    @cached_property
    def tables(self) -> PolicyCache:
        return next_moves(self.task, self.states_max)

    def next(self, start: int, budget: SearchBudget) -> OperatorRow | End:
        """The first move, without the rest; UNKNOWN where it takes more than the budget."""
        state = start & self.task.within
        row = self.tables.next(state)
        if row is not End.UNKNOWN:
            return row
        self.tables.keep(state, search(self.task, state, self.estimate, budget))
        return self.tables.next(state)

    def search(self, start: int, budget: SearchBudget) -> Found:
        state = start & self.task.within
        known = self.tables.route(state)
        if known is not None:
            return known
        found = self.seek(state, budget)
        if not isinstance(found, SearchResult) or found.optimal:
            self.tables.keep(state, found)
        return found

    def seek(
        self,
        start: int,
        budget: SearchBudget,
        *,
        barred: frozenset[str] = frozenset(),
    ) -> Found:
        """The cheapest route where the budget is enough to find it, else any."""
        found = search(self.task, start, self.estimate, budget, barred=barred)
        if not isinstance(found, OutOfBudget) or budget.outlooks <= 0:
            return found
        other = rollout(self.task, self.relaxation, start, budget, barred=barred)
        return replace(other, expanded=found.expanded + other.expanded)


@dataclass(frozen=True, eq=False)
class Factors:
    """A goal as a whole, and its parts."""

    whole: Task
    parts: tuple[Factor, ...]

    def make_ready(self) -> None:
        """Have the tables of all parts now."""
        for part in self.parts:
            assert part.tables is not None

    @cached_property
    def order(self) -> Mapping[Operator, int]:
        """The place of each move among all."""
        return {move: number for number, (*_, move) in enumerate(self.whole.rows)}

    def next(self, start: int, budget: SearchBudget) -> Operator | End:
        """The first move of what a search would find."""
        each = [one.next(start, budget) for one in self.parts]
        for end in (End.WALLED, End.UNKNOWN):
            if end in each:
                return end
        moves = [row[-1] for row in each if isinstance(row, tuple)]
        return min(moves, key=self.order.__getitem__, default=End.MET)

    def search(
        self,
        start: int,
        budget: SearchBudget,
        *,
        barred: frozenset[str] = frozenset(),
    ) -> Found:
        """What a search for the whole finds, put together from its parts."""
        found = [one.search(start, budget) for one in self.parts]
        routes, expanded, cost, optimal = list[SearchResult](), 0, 0, True
        for one in found:
            expanded += one.expanded
            if isinstance(one, SearchResult):
                routes.append(one)
                cost += one.cost
                optimal = optimal and one.optimal
        if len(routes) < len(found):
            walled = next((one for one in found if isinstance(one, Unsolvable)), None)
            return OutOfBudget(expanded) if walled is None else Unsolvable(walled.reached, expanded)
        moves = self._together([one.moves for one in routes if one.moves], barred)
        if moves is None:
            whole = Factor(self.whole, 0)
            return whole.seek(start, budget, barred=barred)
        return SearchResult(moves, cost, expanded, optimal)

    def keep(self, start: int, moves: Sequence[Operator]) -> None:
        """Take over the cheapest route, found elsewhere: each part keeps what it has of it."""
        for one in self.parts:
            mine = tuple(move for move in moves if move.touches & one.task.within)
            cost = sum(move.part.cost for move in mine)
            one.tables.keep(start & one.task.within, SearchResult(mine, cost, expanded=0))

    def _together(
        self, chains: list[tuple[Operator, ...]], barred: frozenset[str]
    ) -> tuple[Operator, ...] | None:
        """One chain of all: of the moves that come next, always the first in order.

        The first of all is not barred; None where each part begins with one that is.
        """
        order = self.order
        if not barred:
            return tuple(merge(*chains, key=order.__getitem__))
        leads = [one for one in chains if one[0].part.path not in barred]
        if chains and not leads:
            return None
        lead = min(leads, key=lambda one: order[one[0]], default=())
        rest = [one[1:] if one is lead else one for one in chains]
        return (*lead[:1], *merge(*rest, key=order.__getitem__))


def factors_of(domain: Domain, goal: Mapping[str, str], memory: Memory) -> Factors:
    """The parts of a goal, kept ready for the next time."""
    key = domain, tuple(sorted(goal.items())), memory
    return _KEPT.get(key, lambda: _factors(domain, goal, memory))


def _factors(domain: Domain, goal: Mapping[str, str], memory: Memory) -> Factors:
    tasks = apart(domain, goal, memory)
    parts = (Factor(one, STATES_MAX // len(tasks)) for one in tasks)
    return Factors(task_of(domain, goal, memory), tuple(parts))


def _size(factors: Factors) -> int:
    """The bits of its rows, which what is worked out for it grows with."""
    return factors.whole.within.bit_length() * len(factors.whole.rows)


_KEPT: Final = SizedLRU[tuple[Domain, tuple[tuple[str, str], ...], Memory], Factors](
    FACTORS_CACHED_MAX, FACTORS_BITS_MAX, _size
)
