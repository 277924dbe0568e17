"""The explanation of a chain, or of what can be reached where there is none."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from haptera.model.answers.explained import Alternative, Explained, Nearest
from haptera.model.chain import Chain, NoChain, Role
from haptera.planner.domain.bars import NO_BARS, Bars, barring
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.problem import subjects
from haptera.planner.domain.replay import link_name, replay
from haptera.planner.domain.task import Memory, Task
from haptera.planner.explain.causal_links import purposes, so_that
from haptera.planner.planner import plan
from haptera.planner.reasons.excuses import Excuses
from haptera.planner.search.a_star import AStar, Found, SearchResult, Unsolvable, search
from haptera.planner.search.factors import factors_of
from haptera.planner.search.landmark_heuristic import LandmarkHeuristic
from haptera.planner.search.search_budget import SearchBudget

# Ways to reach as much of a goal; the answer has the cheapest.
PARTIAL_MAX: Final = 4


@dataclass(frozen=True, slots=True)
class PlanQuestion:
    """What the planner was asked, and what may be spent on all that there is to say of it."""

    domain: Domain
    start: int
    goal: Mapping[str, str]
    budget: SearchBudget
    barred: Bars = NO_BARS

    def root(self, memory: Memory) -> int:
        trusting = self.start | self.domain.touched
        doubted = 0 if memory is Memory.TRUSTED else self.domain.memories(self.start)
        return trusting & ~doubted

    def found(self, memory: Memory) -> Iterator[tuple[Task, Found]]:
        """What the planner finds for each part of the goal, or for all of it where it must."""
        domain, root = barring(self.domain, self.barred.steps), self.root(memory)
        factors = factors_of(domain, self.goal, memory)
        if self.barred:
            whole = LandmarkHeuristic(factors.whole)
            found = search(factors.whole, root, whole, self.budget, barred=self.barred.looks)
            yield factors.whole, found
            return
        for one in factors.parts:
            yield one.task, one.search(root, self.budget)


def waits_for_a_bar(asked: PlanQuestion, chain: Chain) -> bool:
    """True if a chain needs a barred part: then there is no other chain."""
    root = asked.root(Memory.DOUBTED if chain.doubts else Memory.TRUSTED)
    links = [link_name(link) for link in chain.links]
    return replay(asked.domain, root, links, asked.barred) is None


def explain(asked: PlanQuestion, found: Chain | NoChain) -> Explained:
    """What there is to say of an answer, as far as the budget lets it be found out."""
    if isinstance(found, NoChain):
        near = nearest(asked)
        return Explained(nearest=near, cut_short=asked.budget.is_spent)
    runner_up, no_other = Rivals(asked, found).best()
    other = cheaper(asked, found)
    return Explained(
        cost=found.cost,
        so_that=_purposes(asked, found),
        runner_up=runner_up,
        no_other=no_other,
        cheaper=other,
        cut_short=asked.budget.is_spent,
    )


def cheaper(asked: PlanQuestion, chain: Chain) -> Alternative | None:
    """A chain that would cost less, were it not for one variable that this one leaves as it is.

    Rather for one that nothing here could change. Or one that has a part which was tried in vain.
    """
    domain, goal = asked.domain, asked.goal
    if asked.barred:
        free = plan(domain, asked.start, goal, asked.budget)
        if isinstance(free, Chain) and free.cost < chain.cost:
            parts = [link_name(link)[0] for link in free.links]
            failed = asked.barred.first_of(parts) or parts[0]
            return Alternative(f"{failed} has just failed", free.cost, parts)
    others = () if chain.doubts else _unhindered(asked, chain)
    return min(others, key=lambda one: (one[0], one[1].cost), default=(True, None))[1]


def aside(asked: PlanQuestion) -> str | None:
    """What keeps a cheaper chain than the planner's from being taken."""
    found = plan(asked.domain, asked.start, asked.goal, asked.budget, barred=asked.barred)
    other = cheaper(asked, found) if isinstance(found, Chain) else None
    return None if other is None else other.text


def nearest(asked: PlanQuestion) -> Nearest | None:
    """The most of the goal that can be had, at the least cost; None where that is so already."""
    domain, start = asked.domain, asked.start
    partial: dict[str, str] = {}
    for task, found in asked.found(Memory.TRUSTED):
        met = isinstance(found, SearchResult)
        subsets = [dict(task.goal)] if met else islice(_within_reach(asked, task), PARTIAL_MAX)
        plans = [(plan(domain, start, one, asked.budget), one) for one in subsets]
        chains = [(one.cost, sorted(some.items())) for one, some in plans if isinstance(one, Chain)]
        partial |= dict(min(chains)[1]) if chains else {}
    chain = plan(domain, start, partial, asked.budget)
    if not isinstance(chain, Chain) or not chain.links:
        return None
    known = domain.known(start).items()
    values = {name: value for name, value in sorted(partial.items()) if (name, value) not in known}
    return Nearest(values, chain.cost, [link_name(link)[0] for link in chain.links])


class Rivals:
    """What a chain would cost without each of its parts."""

    def __init__(self, asked: PlanQuestion, chain: Chain) -> None:
        self._asked = asked
        self._chain = chain
        self._memory = Memory.DOUBTED if chain.doubts else Memory.TRUSTED

    def best(self) -> tuple[Alternative | None, bool]:
        """The cheapest; where there is none, whether it is proven that there is none."""
        others, told = list[Alternative](), bool(self._chain.links)
        for task, route in self._asked.found(self._memory):
            if not isinstance(route, SearchResult):
                return None, False
            for path in dict.fromkeys(move.part.path for move in route.moves):
                other = self._search(_without(task, path))
                told &= isinstance(other, SearchResult | Unsolvable)
                if isinstance(other, SearchResult):
                    cost = self._chain.cost - route.cost + other.cost
                    parts = [move.part.path for move in other.moves]
                    others.append(Alternative(f"without {path}", cost, parts))
        return min(others, key=lambda one: one.cost, default=None), told and not others

    def _search(self, task: Task) -> Found | None:
        asked, root = self._asked, self._asked.root(self._memory)
        if asked.budget.is_spent:
            return None
        return search(task, root, LandmarkHeuristic(task), asked.budget, barred=asked.barred.looks)


def _without(task: Task, path: str) -> Task:
    """The task without a part; what is known still rests on it."""
    return replace(task, rows=tuple(row for row in task.rows if row[-1].part.path != path))


def _unhindered(asked: PlanQuestion, chain: Chain) -> Iterator[tuple[bool, Alternative]]:
    """Cheaper chains that conditions on one variable bar, and whether that could be changed."""
    touched = {name for link in chain.links for name in subjects(link.part)}
    for task, route in asked.found(Memory.TRUSTED):
        if not isinstance(route, SearchResult):
            continue
        trials = Excuses(asked.domain, [task], asked.start, asked.budget)
        for one in trials.hurdles(Role.CONDITION):
            way = None if one.variable in touched else trials.way(frozenset((one,)))
            if way and way.cost < route.cost and not asked.barred.first_of(way.parts):
                text = "; ".join(way.told(asked.domain))
                cost = chain.cost - route.cost + way.cost
                yield not trials.stuck(one), Alternative(text, cost, list(way.parts))


def _within_reach(asked: PlanQuestion, task: Task) -> Iterator[dict[str, str]]:
    """The largest parts of a goal that are met in some state within reach."""
    found = AStar(task, asked.root(Memory.TRUSTED), budget=asked.budget).best()
    if not isinstance(found, Unsolvable):
        return
    fields = asked.domain.fields
    bits = {name: fields[name].holding((value,)) for name, value in task.goal.items()}
    met = {tuple(name for name in sorted(bits) if state & bits[name]) for state in found.reached}
    most = max(map(len, met))
    for names in sorted(one for one in met if len(one) == most):
        yield {name: task.goal[name] for name in names}


def _purposes(asked: PlanQuestion, chain: Chain) -> list[str | None]:
    domain = asked.domain
    root = asked.root(Memory.DOUBTED if chain.doubts else Memory.TRUSTED)
    trail = replay(domain, root, [link_name(link) for link in chain.links])
    if trail is None:
        return []
    goal = dict(asked.goal.items() & domain.known(trail.states[-1]).items())
    steps = zip(purposes(domain, goal, trail), trail.states, trail.states[1:], strict=False)
    return [so_that(domain, needs, before, after) for needs, before, after in steps]
