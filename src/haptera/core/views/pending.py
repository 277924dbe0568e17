"""Changes that listeners were not told yet, worked out once for all that want the same."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations
from typing import Final

import msgspec
from msgspec.structs import replace

from haptera.model.entity import EntityId
from haptera.model.news import News, Types
from haptera.selectors.subscription import Subscription

# Each set of types once: a listener may hold thousands of them.
_SETS: Final[dict[Types, Types]] = {
    some: some
    for count in range(len(News) + 1)
    for some in map(frozenset, combinations(News, count))
}


class EntityChange(msgspec.Struct, frozen=True, gc=False):
    """One entity that changed, and in what; by its name too, whose hash Python keeps.

    `number` is that of its first change that was not told.
    """

    number: int
    name: str
    entity: EntityId
    types: Types


# Changes that were published together, or one after the other.
Changes = Sequence[EntityChange]


class PendingChanges:
    """Changes that a listener was not told yet, in the order in which each entity changed first.

    They stay as they are, so that alike listeners share them, and what is worked out of them.
    """

    def __init__(self, changes: tuple[EntityChange, ...]) -> None:
        self.changes = changes
        self._parts: dict[tuple[int, int], Mapping[EntityId, Types]] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """The entities that changed."""
        return frozenset(change.name for change in self.changes)

    def part(self, begin: int, end: int) -> Mapping[EntityId, Types]:
        """Some of the entities, in order, and in what they changed."""
        if (begin, end) not in self._parts:
            some = {change.entity: change.types for change in self.changes[begin:end]}
            self._parts[begin, end] = some
        return self._parts[begin, end]


NOTHING_PENDING: Final = PendingChanges(())


class Merger:
    """Merges what is published for alike listeners: most are as far behind as the last one was."""

    def __init__(self) -> None:
        self._last: tuple[tuple[PendingChanges, int, int, int], PendingChanges] | None = None

    def merge(
        self, pending: PendingChanges, begin: int, later: Sequence[Changes]
    ) -> PendingChanges:
        """Those pending from a place on, and what came later, which is not empty."""
        merged = pending, begin, later[0][0].number, later[-1][-1].number
        if self._last is None or self._last[0] != merged:
            self._last = merged, PendingChanges(_merged(chain(pending.changes[begin:], *later)))
        return self._last[1]


def matched(wanted: Subscription, changes: Iterable[EntityChange]) -> list[EntityChange]:
    """Those that are wanted, each only in what is wanted of it."""
    types = wanted.types
    return [
        change if change.types <= types else replace(change, types=_SETS[change.types & types])
        for change in changes
        if not change.types.isdisjoint(types) and change.entity in wanted
    ]


def _merged(changes: Iterable[EntityChange]) -> tuple[EntityChange, ...]:
    """Each entity once, at the place of its first change, with all types in which it changed."""
    found: dict[str, EntityChange] = {}
    for change in changes:
        first = found.setdefault(change.name, change)
        if not change.types <= first.types:
            types = _SETS[first.types | change.types]
            found[change.name] = replace(first, types=types)
    return tuple(found.values())
