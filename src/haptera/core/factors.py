"""A goal in the parts that have nothing to do with each other, each searched for by itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from heapq import merge
from typing import Final

from haptera.core.estimate import Estimate
from haptera.core.knowledge import Domain
from haptera.core.scope import Memory, Scope, apart, scope_of
from haptera.core.search import Found, Route, Spent, Walled, search
from haptera.core.word import Move

# Goals of classes that are kept ready: fleets have few.
FACTORS_CACHED_MAX: Final = 256


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """A goal that is searched for in one, and what it costs at the least."""

    scope: Scope
    estimate: Estimate

    def search(self, start: int, *, budget: int, barred: frozenset[str] = frozenset()) -> Found:
        return search(self.scope, start, self.estimate, budget=budget, barred=barred)


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """A goal as a whole, and its parts."""

    whole: Scope
    parts: tuple[Factor, ...]

    def search(self, start: int, *, budget: int, barred: frozenset[str] = frozenset()) -> Found:
        """What a search for the whole finds, put together from its parts.

        `budget` bounds the states of each search.
        """
        found = [one.search(start, budget=budget) for one in self.parts]
        expanded = sum(one.expanded for one in found)
        for one in found:
            if isinstance(one, Walled):
                return Walled(one.reached, expanded)
        routes = [one for one in found if isinstance(one, Route)]
        if len(routes) < len(found):
            return Spent(expanded)
        moves = self._together([one.moves for one in routes if one.moves], barred)
        if moves is None:
            whole = Factor(self.whole, Estimate(self.whole))
            return whole.search(start, budget=budget, barred=barred)
        return Route(moves, sum(one.cost for one in routes), expanded)

    def _together(
        self, chains: list[tuple[Move, ...]], barred: frozenset[str]
    ) -> tuple[Move, ...] | None:
        """One chain of all: of the moves that come next, always the first in order.

        The first of all is not barred; None where each part begins with one that is.
        """
        order = {move: number for number, (*_, move) in enumerate(self.whole.rows)}
        leads = [one for one in chains if one[0].part.path not in barred]
        if chains and not leads:
            return None
        lead = min(leads, key=lambda one: order[one[0]], default=())
        rest = [one[1:] if one is lead else one for one in chains]
        return (*lead[:1], *merge(*rest, key=order.__getitem__))


def factors_of(domain: Domain, goal: Mapping[str, str], memory: Memory) -> Factors:
    """The parts of a goal, kept ready for the next time."""
    return _factors(domain, tuple(sorted(goal.items())), memory)


@lru_cache(FACTORS_CACHED_MAX)
def _factors(domain: Domain, goal: tuple[tuple[str, str], ...], memory: Memory) -> Factors:
    parts = (Factor(one, Estimate(one)) for one in apart(domain, dict(goal), memory))
    return Factors(scope_of(domain, dict(goal), memory), tuple(parts))
