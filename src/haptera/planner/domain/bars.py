"""Bars: parts that have failed, and the attempts that are not made again for a while."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from haptera.model.chain import Do
from haptera.planner.domain.bitstate import Field, Operator
from haptera.planner.domain.domain import Domain

# Classes under bars that are kept ready: what fails, fails on many entities at once.
BARRED_CACHED_MAX: Final = 32

# The most ways in which a step may differ from all its failures; beyond it some are not tried yet.
WAYS_MAX: Final = 64

# A step's path, and the state in which it failed.
Failed = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Bars:
    """Parts not to try again yet: these looks not first, these steps not as they failed."""

    looks: frozenset[str] = frozenset()
    steps: frozenset[Failed] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.looks or self.steps)

    def first_of(self, paths: Iterable[str]) -> str | None:
        """The first of these parts that is among them, in whatever state."""
        failed = self.looks | {path for path, _ in self.steps}
        return next((path for path in paths if path in failed), None)


NO_BARS: Final = Bars()


def barring(domain: Domain, steps: frozenset[Failed]) -> Domain:
    """The class without the attempts that have failed.

    Two attempts of a step are the same where nothing differs that it requires, excludes or changes:
    of all else it has said that it does not matter. So no other part is taken only to come to
    another state in which the step is no longer barred (docs/explain/acting.md).
    """
    if not steps:
        return domain
    reads = {one.part.path: one.reads for one in domain.moves if isinstance(one.link, Do)}
    failed = frozenset((path, state & reads[path]) for path, state in steps if path in reads)
    return _without(domain, failed)


@lru_cache(BARRED_CACHED_MAX)
def _without(domain: Domain, failed: frozenset[Failed]) -> Domain:
    moves = list[Operator]()
    for move in domain.moves:
        states = sorted(state for path, state in failed if path == move.part.path)
        moves += _otherwise(move, tuple(domain.fields.values()), states)
    return replace(domain, moves=tuple(moves))


def _otherwise(move: Operator, fields: Iterable[Field], states: Iterable[int]) -> list[Operator]:
    """The ways in which a move differs from each of these attempts in at least one variable."""
    ways = [move]
    for state in states:
        found = [other for way in ways for other in _ways_to_differ(way, fields, state)]
        ways = _widest(found)[:WAYS_MAX]
    return ways


def _widest(ways: list[Operator]) -> list[Operator]:
    """Without those that can be taken in no state in which another cannot."""
    kept = list[Operator]()
    for way in sorted(ways, key=lambda one: one.forbidden.bit_count()):
        if not any(one.forbidden & ~way.forbidden == 0 for one in kept):
            kept.append(way)
    return kept


def _ways_to_differ(move: Operator, fields: Iterable[Field], state: int) -> Iterator[Operator]:
    for field in fields:
        if field.whole & move.reads:
            forbidden = move.forbidden | _alike(field, state)
            if field.whole & ~forbidden:
                yield replace(move, forbidden=forbidden)


def _alike(field: Field, state: int) -> int:
    """The ways in which a variable has the same value, which may be known or remembered."""
    value = state & field.known | (state & field.remembered) >> field.width
    return value | value << field.width if value else field.unknown
