"""Excuses: the fewest obstacles without which there would be a plan.

Göbelbecker, Keller, Eyerich, Brenner, Nebel, "Coming Up With Good Excuses", ICAPS 2010. Each is
proven: without these obstacles there is a plan, and with any one of them back there is none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from haptera.model.chain import Do, Hurdle, Role
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.task import Task
from haptera.planner.reasons.ignored_conditions import ignored_of, relaxed
from haptera.planner.reasons.obstacles import Breach, breaches, told
from haptera.planner.search.a_star import SearchResult, search
from haptera.planner.search.landmark_heuristic import LandmarkHeuristic
from haptera.planner.search.search_budget import SearchBudget

# What relaxing a row takes, in moves tried.
RELAXING: Final = 40

Hurdles = frozenset[Hurdle]


@dataclass(frozen=True, slots=True)
class RelaxedRoute:
    """The cheapest routes that there would be without these hurdles, and where they meet them."""

    hurdles: Hurdles
    cost: int
    parts: tuple[str, ...]
    met: tuple[Breach, ...]

    def told(self, domain: Domain) -> list[str]:
        """Each hurdle in words, in the order in which they are met last."""
        by_hurdle: dict[Hurdle, list[Breach]] = {}
        for one in self.met:
            if one.hurdle in self.hurdles:
                by_hurdle[one.hurdle] = [*by_hurdle.pop(one.hurdle, ()), one]
        return [told(domain, some) for some in by_hurdle.values()]


class Excuses:
    """Searches from a start as though some hurdles were not there, while a budget lasts.

    The tasks are of goals that have nothing to do with each other, and are to be met together.
    """

    def __init__(
        self, domain: Domain, tasks: Sequence[Task], start: int, budget: SearchBudget
    ) -> None:
        self._domain = domain
        self._scopes = tasks
        self._start = start
        self._budget = budget
        fields = {field.name: field for task in tasks for field in task.fields}
        self._fields = [fields[name] for name in sorted(fields)]
        self._moves = list(dict.fromkeys(row[-1] for task in tasks for row in task.rows))

    def smallest(self) -> RelaxedRoute | None:
        """Without one hurdle, or else as few as can be; None where none were found."""
        known: list[Hurdle] = []
        for role in Role:
            singles = self.hurdles(role)
            if way := self.best(singles):
                return way
            known += singles
            if way := self.way(frozenset(known)):
                return self._fewest(way)
        return None

    def hurdles(self, role: Role) -> list[Hurdle]:
        """All that could be in the way: what parts ask of variables, or where these start."""
        asked = 0
        for move in self._moves:
            if role is Role.CONDITION:
                asked |= move.forbidden & ~move.touches
            elif isinstance(move.link, Do) is (role is Role.SOURCE):
                asked |= move.forbidden & move.touches
        return [Hurdle(field.name, role) for field in self._fields if field.whole & asked]

    def best(self, hurdles: Iterable[Hurdle]) -> RelaxedRoute | None:
        """The way without one of these: of those that are rather named, the cheapest."""
        for _, alike in groupby(sorted(hurdles, key=self._place), key=self._place):
            ways = [way for one in alike if (way := self.way(frozenset((one,))))]
            if ways:
                return min(ways, key=lambda way: way.cost)
        return None

    def way(self, hurdles: Hurdles) -> RelaxedRoute | None:
        """The way that there would be without these; None: there is none, or it is not known."""
        cost, parts, met = 0, list[str](), list[Breach]()
        relief = ignored_of(self._fields, hurdles)
        for task in self._scopes:
            if self._budget.is_spent or not self._budget.covers(RELAXING * len(task.rows)):
                return None
            self._budget.spend(0, states=1)
            freed = relaxed(task, relief)
            found = search(freed, self._start, LandmarkHeuristic(freed), self._budget)
            if not isinstance(found, SearchResult):
                return None
            cost += found.cost
            parts += (move.part.path for move in found.moves)
            met += breaches(self._domain, task, freed, self._start, found.moves)
        return RelaxedRoute(hurdles, cost, tuple(parts), tuple(met))

    def stuck(self, hurdle: Hurdle) -> bool:
        """Whether no part starts from where the variable stands and leads to another value."""
        field = self._domain.fields[hurdle.variable]
        here = self._start & field.whole
        held = here & field.known | (here & field.remembered) >> field.width
        same = held | held << field.width
        return not any(
            move.put & field.whole & ~same and not move.forbidden & here
            for move in self._moves
            if move.touches & here
        )

    def _fewest(self, way: RelaxedRoute) -> RelaxedRoute | None:
        """Put back one hurdle after the other, where there is a way all the same."""
        left: Hurdles = frozenset()
        while left != way.hurdles:
            left = way.hurdles
            by_name = sorted(left, key=lambda one: one.variable)
            for one in sorted(by_name, key=self._place, reverse=True):
                way = self.way(way.hurdles - {one}) or way
        return None if self._budget.is_spent else way

    def _place(self, hurdle: Hurdle) -> tuple[int, bool, bool]:
        """What comes first is rather named: what is not desired, and what nothing here changes."""
        field = self._domain.fields[hurdle.variable]
        wanted = any(field.whole & task.wanted for task in self._scopes)
        return list(Role).index(hurdle.role), wanted, not self.stuck(hurdle)
