"""What stands in the way of a goal: the fewest hurdles without which there is a chain.

Proven by leaving them out: what is answered was searched for as though these hurdles were not
there, and with any one of them back there was no chain.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final

from haptera.core.estimate import Estimate
from haptera.core.hurdles import Breach, breaches, told
from haptera.core.knowledge import Domain
from haptera.core.relaxed import relaxed, relief_of
from haptera.core.scope import Scope
from haptera.core.search import Route, search
from haptera.core.word import Field
from haptera.model.chain import Do, Hurdle, Role

# What it takes to begin a search, in states that it could go on from instead.
TRIAL_STATES: Final = 4

Hurdles = frozenset[Hurdle]


@dataclass(frozen=True, slots=True)
class Way:
    """What the cheapest routes would cost without these hurdles, and where they meet them."""

    hurdles: Hurdles
    cost: int
    met: tuple[Breach, ...]

    def told(self, domain: Domain) -> list[str]:
        """Each hurdle in words, in the order in which they are met."""
        by_hurdle: dict[Hurdle, list[Breach]] = {}
        for one in self.met:
            if one.hurdle in self.hurdles:
                by_hurdle.setdefault(one.hurdle, []).append(one)
        return [told(domain, some) for some in by_hurdle.values()]


class Trials:
    """Searches from a start as though some hurdles were not there, while a budget lasts.

    The scopes are of goals that have nothing to do with each other, and are to be met together.
    """

    def __init__(self, domain: Domain, scopes: Sequence[Scope], start: int, budget: int) -> None:
        self._domain = domain
        self._scopes = scopes
        self._start = start
        self.budget = budget
        fields = {field.name: field for scope in scopes for field in scope.fields}
        self._fields = [fields[name] for name in sorted(fields)]
        moves = (row[-1] for scope in scopes for row in scope.rows)
        self._made = reduce(or_, (one.put for one in moves if isinstance(one.link, Do)), 0)

    def smallest(self) -> Way | None:
        """Without one hurdle, or else as few as can be; None where none were found."""
        known: list[Hurdle] = []
        for role in Role:
            singles = [Hurdle(field.name, role) for field in self._fields]
            if way := self.best(singles):
                return way
            known += singles
            if way := self.way(frozenset(known)):
                return self._fewest(way)
        return None

    def best(self, hurdles: Sequence[Hurdle]) -> Way | None:
        """The way without one of these: rather one that is neither desired nor could be changed."""
        ways = [way for one in hurdles if (way := self.way(frozenset((one,))))]
        return min(ways, key=self._rank, default=None)

    def way(self, hurdles: Hurdles) -> Way | None:
        """The way that there would be without these; None: there is none, or it is not known."""
        cost, met = 0, list[Breach]()
        relief = relief_of(self._fields, hurdles)
        for scope in self._scopes:
            if self.budget <= 0:
                return None
            freed = relaxed(scope, relief)
            found = search(freed, self._start, Estimate(freed), budget=self.budget)
            self.budget -= found.expanded + TRIAL_STATES
            if not isinstance(found, Route):
                return None
            cost += found.cost
            met += breaches(self._domain, scope, freed, self._start, found.moves)
        return Way(hurdles, cost, tuple(met))

    def led(self, way: Way) -> bool:
        """Whether a step leads to where the variable of the way's only hurdle would do."""
        (hurdle,) = way.hurdles
        bits = reduce(or_, (one.bits for one in way.met if one.hurdle == hurdle), 0)
        return bool(self._made & self._domain.fields[hurdle.variable].whole & ~bits)

    def _rank(self, way: Way) -> tuple[bool, bool, int, str]:
        (hurdle,) = way.hurdles
        wanted = self._is_wanted(self._domain.fields[hurdle.variable])
        return wanted, self.led(way), way.cost, hurdle.variable

    def _fewest(self, way: Way) -> Way | None:
        """Put back one hurdle after the other, where there is a way all the same."""
        left: Hurdles = frozenset()
        while left != way.hurdles:
            left = way.hurdles
            for one in sorted(left, key=self._order):
                way = self.way(way.hurdles - {one}) or way
        return way if self.budget > 0 else None

    def _order(self, hurdle: Hurdle) -> tuple[int, bool, bool, str]:
        """Those first that are only named where they must be."""
        field = self._domain.fields[hurdle.variable]
        given = not self._made & field.whole
        return -list(Role).index(hurdle.role), not self._is_wanted(field), given, field.name

    def _is_wanted(self, field: Field) -> bool:
        return any(field.whole & scope.wanted for scope in self._scopes)
