"""The classes of a kind that its parts tell apart, each compiled once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod
from typing import Final

from haptera.planner.domain.domain import Domain, compiling_class, excluding_attribute
from haptera.planner.domain.pieces import Pieces
from haptera.planner.domain.problem import Problem

# Ways to combine attributes that are gone through, and classes that are made of them.
COMBINATIONS_MAX: Final = 4_096
CLASSES_MAX: Final = 64
# What it costs to see of a part whether it is in a class, in moves tried.
SELECTING: Final = 10

Attributes = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class Classes:
    """One class for each choice of parts; not `complete`: only so many as there may be."""

    domains: tuple[Domain, ...]
    complete: bool


def compiling(problem: Problem) -> Pieces[Classes]:
    """All classes, whatever the attributes of the problem; those with fewer first. In pieces."""
    found: dict[tuple[str, ...], Problem] = {}
    complete = _combinations(problem) <= COMBINATIONS_MAX
    for attributes in islice(_attributes(problem), COMBINATIONS_MAX):
        one = replace(problem, attributes=attributes)
        parts = tuple(part.path for part in one.parts if excluding_attribute(one, part) is None)
        yield SELECTING * len(problem.parts)
        if parts and parts not in found:
            if len(found) == CLASSES_MAX:
                complete = False
                break
            found[parts] = one
    domains: tuple[Domain, ...] = ()
    for one in found.values():
        domains += ((yield from compiling_class(one)),)
    return Classes(domains, complete)


def _combinations(problem: Problem) -> int:
    return prod(len(values) for values in _values(problem).values())


def _attributes(problem: Problem) -> Iterator[Attributes]:
    values = _values(problem)
    for chosen in product(*values.values()):
        yield dict(zip(values, chosen, strict=True))


def _values(problem: Problem) -> Mapping[str, list[str | None]]:
    """What conditions name of each attribute, and None: any other value selects as none does."""
    values: dict[str, list[str | None]] = {name: [None] for name in problem.attributes}
    for part in problem.parts:
        for one in (*part.requires, *part.excludes):
            named = values.get(one.name, [])
            named += [value for value in one.values if value not in named]
    return values
