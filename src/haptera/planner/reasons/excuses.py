"""What stands in the way of a goal: the fewest hurdles without which there is a chain.

Proven by leaving them out: what is answered was searched for as though these hurdles were not
there, and with any one of them back there was no chain.
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
    """Searches from a start as though some hurdles were not there, while an allowance lasts.

    The scopes are of goals that have nothing to do with each other, and are to be met together.
    """

    def __init__(
        self, domain: Domain, scopes: Sequence[Task], start: int, allowance: SearchBudget
    ) -> None:
        self._domain = domain
        self._scopes = scopes
        self._start = start
        self._allowance = allowance
        fields = {field.name: field for scope in scopes for field in scope.fields}
        self._fields = [fields[name] for name in sorted(fields)]
        self._moves = list(dict.fromkeys(row[-1] for scope in scopes for row in scope.rows))

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
        for scope in self._scopes:
            if self._allowance.is_spent or not self._allowance.covers(RELAXING * len(scope.rows)):
                return None
            self._allowance.spend(0, states=1)
            freed = relaxed(scope, relief)
            found = search(freed, self._start, LandmarkHeuristic(freed), self._allowance)
            if not isinstance(found, SearchResult):
                return None
            cost += found.cost
            parts += (move.part.path for move in found.moves)
            met += breaches(self._domain, scope, freed, self._start, found.moves)
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
        return None if self._allowance.is_spent else way

    def _place(self, hurdle: Hurdle) -> tuple[int, bool, bool]:
        """What comes first is rather named: what is not desired, and what nothing here changes."""
        field = self._domain.fields[hurdle.variable]
        wanted = any(field.whole & scope.wanted for scope in self._scopes)
        return list(Role).index(hurdle.role), wanted, not self.stuck(hurdle)
