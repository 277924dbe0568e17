"""Why this chain and no other, or what can be had where there is none: for whoever asks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Final

from haptera.core.blocked import Trials, effort
from haptera.core.estimate import Estimate
from haptera.core.factors import factors_of
from haptera.core.knowledge import Domain
from haptera.core.planner import plan
from haptera.core.problem import subjects
from haptera.core.purposes import purposes, so_that
from haptera.core.replay import link_name, replay
from haptera.core.scope import Memory, Scope
from haptera.core.search import Found, Route, Search, Walled, affordable, search
from haptera.model.chain import Chain, NoChain, Role
from haptera.model.explained import Alternative, Explained, Nearest

# Ways to have as much of a goal, of which the cheapest is told.
PARTIAL_MAX: Final = 4
# Classes in some state, on their way somewhere, of which it is remembered what is cheaper.
ASIDES_CACHED_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class Asked:
    """What the planner was asked. `budget` bounds the states of all searches for one purpose."""

    domain: Domain
    start: int
    goal: Mapping[str, str]
    budget: int
    barred: frozenset[str] = frozenset()

    def root(self, memory: Memory) -> int:
        trusting = self.start | self.domain.touched
        doubted = 0 if memory is Memory.TRUSTED else self.domain.memories(self.start)
        return trusting & ~doubted

    def found(self, memory: Memory) -> Iterator[tuple[Scope, Found]]:
        """What the planner finds for each part of the goal, or for all of it where it must."""
        factors, root = factors_of(self.domain, self.goal, memory), self.root(memory)
        if self.barred:
            whole = Estimate(factors.whole)
            yield (
                factors.whole,
                search(factors.whole, root, whole, budget=self.budget, barred=self.barred),
            )
            return
        for one in factors.parts:
            yield one.scope, one.search(root, budget=self.budget)


def explain(asked: Asked, found: Chain | NoChain) -> Explained:
    """What there is to say of an answer, as far as the budget allows to find it out."""
    if isinstance(found, NoChain):
        return Explained(nearest=nearest(asked))
    runner_up, no_other = Rivals(asked, found).best()
    return Explained(
        cost=found.cost,
        so_that=_purposes(asked, found),
        runner_up=runner_up,
        no_other=no_other,
        cheaper=cheaper(asked, found),
    )


def cheaper(asked: Asked, chain: Chain) -> Alternative | None:
    """A chain that would cost less, were it not for one variable that this one leaves as it is.

    Rather for one that nothing here could change. Or one that begins with a part which was tried
    in vain.
    """
    domain, goal = asked.domain, asked.goal
    if asked.barred:
        free = plan(domain, asked.start, goal, budget=asked.budget)
        if isinstance(free, Chain) and free.cost < chain.cost:
            parts = [link_name(link)[0] for link in free.links]
            return Alternative(f"{parts[0]} was tried from here in vain", free.cost, parts)
    others = () if chain.doubts else _unhindered(asked, chain)
    return min(others, key=lambda one: (one[0], one[1].cost), default=(True, None))[1]


@lru_cache(ASIDES_CACHED_MAX)
def aside(
    domain: Domain, start: int, goal: tuple[tuple[str, str], ...], barred: frozenset[str]
) -> str | None:
    """What keeps a cheaper chain than the planner's from being taken, within what is affordable."""
    asked = Asked(domain, start, dict(goal), affordable(domain), barred)
    found = plan(domain, start, asked.goal, barred=barred, budget=asked.budget)
    other = cheaper(asked, found) if isinstance(found, Chain) else None
    return None if other is None else other.text


def nearest(asked: Asked) -> Nearest | None:
    """The most of the goal that can be had, at the least cost; None where that is so already."""
    domain, start = asked.domain, asked.start
    partial: dict[str, str] = {}
    for scope, found in asked.found(Memory.TRUSTED):
        met = isinstance(found, Route)
        subsets = [dict(scope.goal)] if met else islice(_within_reach(asked, scope), PARTIAL_MAX)
        plans = [(plan(domain, start, one, budget=asked.budget), one) for one in subsets]
        chains = [(one.cost, sorted(some.items())) for one, some in plans if isinstance(one, Chain)]
        partial |= dict(min(chains)[1]) if chains else {}
    chain = plan(domain, start, partial, budget=asked.budget)
    if not isinstance(chain, Chain) or not chain.links:
        return None
    known = domain.known(start).items()
    values = {name: value for name, value in sorted(partial.items()) if (name, value) not in known}
    return Nearest(values, chain.cost, [link_name(link)[0] for link in chain.links])


class Rivals:
    """What a chain would cost without each of its parts."""

    def __init__(self, asked: Asked, chain: Chain) -> None:
        self._asked = asked
        self._chain = chain
        self._memory = Memory.DOUBTED if chain.doubts else Memory.TRUSTED
        self._budget = asked.budget

    def best(self) -> tuple[Alternative | None, bool]:
        """The cheapest; where there is none, whether it is proven that there is none."""
        others, told = list[Alternative](), bool(self._chain.links)
        for scope, route in self._asked.found(self._memory):
            if not isinstance(route, Route):
                return None, False
            for path in dict.fromkeys(move.part.path for move in route.moves):
                other = self._search(_without(scope, path))
                told &= isinstance(other, Route | Walled)
                if isinstance(other, Route):
                    cost = self._chain.cost - route.cost + other.cost
                    parts = [move.part.path for move in other.moves]
                    others.append(Alternative(f"without {path}", cost, parts))
        return min(others, key=lambda one: one.cost, default=None), told and not others

    def _search(self, scope: Scope) -> Found | None:
        if self._budget <= 0:
            return None
        asked, root = self._asked, self._asked.root(self._memory)
        found = search(scope, root, Estimate(scope), budget=self._budget, barred=asked.barred)
        self._budget -= found.expanded + effort(asked.domain, scope)
        return found


def _without(scope: Scope, path: str) -> Scope:
    """The scope without a part; what is known still rests on it."""
    return replace(scope, rows=tuple(row for row in scope.rows if row[-1].part.path != path))


def _unhindered(asked: Asked, chain: Chain) -> Iterator[tuple[bool, Alternative]]:
    """Cheaper chains that conditions on one variable bar, and whether that could be changed."""
    budget = asked.budget
    touched = {name for link in chain.links for name in subjects(link.part)}
    for scope, route in asked.found(Memory.TRUSTED):
        if not isinstance(route, Route):
            continue
        trials = Trials(asked.domain, [scope], asked.start, budget)
        for one in trials.hurdles(Role.CONDITION):
            way = None if one.variable in touched else trials.way(frozenset((one,)))
            if way and way.cost < route.cost and way.parts[0] not in asked.barred:
                text = "; ".join(way.told(asked.domain))
                cost = chain.cost - route.cost + way.cost
                yield not trials.stuck(one), Alternative(text, cost, list(way.parts))
        budget = trials.budget


def _within_reach(asked: Asked, scope: Scope) -> Iterator[dict[str, str]]:
    """The largest parts of a goal that are met in some state within reach."""
    found = Search(scope, asked.root(Memory.TRUSTED)).best(asked.budget)
    if not isinstance(found, Walled):
        return
    fields = asked.domain.fields
    bits = {name: fields[name].holding((value,)) for name, value in scope.goal.items()}
    met = {tuple(name for name in sorted(bits) if state & bits[name]) for state in found.reached}
    most = max(map(len, met))
    for names in sorted(one for one in met if len(one) == most):
        yield {name: scope.goal[name] for name in names}


def _purposes(asked: Asked, chain: Chain) -> list[str | None]:
    domain = asked.domain
    root = asked.root(Memory.DOUBTED if chain.doubts else Memory.TRUSTED)
    trail = replay(domain, root, map(link_name, chain.links))
    if trail is None:
        return []
    steps = zip(purposes(domain, asked.goal, trail), trail.states, trail.states[1:], strict=False)
    return [so_that(domain, needs, before, after) for needs, before, after in steps]
