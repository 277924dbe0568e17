"""What a part demands of the state that it is taken in, one by one, and which demands clash."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from haptera.lint.reachability import Reachability
from haptera.model.parts import ANY, Look, Part
from haptera.planner.domain.bitstate import Field
from haptera.planner.domain.domain import excluded, unmet, unsourced
from haptera.planner.domain.witness import Witness
from haptera.planner.reasons.achievers import named


@dataclass(frozen=True, slots=True)
class Demand:
    """One of them, in words, and the bits that must not be set."""

    variable: str
    verb: str
    what: str
    forbidden: int


@dataclass(frozen=True, slots=True)
class Clash:
    """Demands that no state meets together, though one meets all but the last of them."""

    demands: tuple[Demand, ...]
    nearest: Witness | None

    @property
    def text(self) -> str:
        return spoken(f"{one.verb} {one.what}".strip() for one in self.demands)


def demands(part: Part, fields: Mapping[str, Field]) -> list[Demand]:
    """Those on variables: attributes have selected the part already."""
    found = [
        Demand(one.name, verb, named(one.name, one.values), bits(one, fields))
        for verb, conditions, bits in (
            ("requires", part.requires, unmet),
            ("excludes", part.excludes, excluded),
        )
        for one in conditions
        if one.name in fields
    ]
    for change in () if isinstance(part, Look) else part.changes:
        if change.sources == (ANY,):
            source = f"{change.variable} other than {change.target}"
        else:
            source = named(change.variable, change.sources)
        found.append(Demand(change.variable, "starts from", source, unsourced(change, fields)))
    return found


def clash(prospects: Reachability, among: Sequence[Demand], within: int) -> Clash | None:
    """The fewest of these demands that no state of these bits meets; None: one meets them all.

    Raises:
        TooLargeError: it takes too long to tell.
    """
    find = prospects.states.find
    if find(within & ~_forbidden(among)):
        return None
    needed = list(among)
    for one in among:
        rest = [other for other in needed if other is not one]
        if not find(within & ~_forbidden(rest)):
            needed = rest
    return Clash(tuple(needed), find(within & ~_forbidden(needed[:-1])))


def spoken(texts: Iterable[str]) -> str:
    """As one says it: `a`, `a and b`, `a, b and c`."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def _forbidden(some: Iterable[Demand]) -> int:
    return reduce(or_, (one.forbidden for one in some), 0)
