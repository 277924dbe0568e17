"""The past of entities, found by comparing each with how it was when it was last looked at."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.model.answers.past import Happened, Sort
from haptera.model.answers.views import Condition
from haptera.model.entity import EntityId

_NS_PER_S = 1e9
# What was seen is kept once for entities that are alike, of so many sorts.
ALIKE_CACHED_MAX: Final = 1_024


@dataclass(frozen=True, slots=True)
class _Seen:
    """One entity as it was; `tried_at` is when the last announced step ended."""

    facts: tuple[tuple[str, str], ...]
    condition: Condition
    why: str | None
    tried_at: int


_NOTHING = _Seen((), Condition.IDLE, None, 0)


class Chronicle:
    """Follows the entities of a table; forgets those that are gone."""

    def __init__(self, table: EntityTable) -> None:
        self._table = table
        self._seen: dict[EntityId, _Seen] = {}

    def begin(self, now: int, wall_offset_ns: int) -> Happened:
        """Begin anew, from nothing: earlier news may be lost."""
        self._seen.clear()
        return Happened((now + wall_offset_ns) / _NS_PER_S, "", Sort.BEGUN)

    def begin_again(self, now: int, wall_offset_ns: int) -> list[Happened]:
        """As `begin`, and how all entities are now."""
        begun = self.begin(now, wall_offset_ns)
        everything = [row.id for row in self._table]
        return [begun, *self.follow(everything, now, wall_offset_ns)]

    def follow(self, entities: Iterable[EntityId], now: int, wall_offset_ns: int) -> list[Happened]:
        """What happened to these since they were last followed, in wall time."""
        found: list[Happened] = []
        for entity in entities:
            row = self._table.get(entity)
            if row is not None:
                found += self._changes(row, now, wall_offset_ns)
            elif self._seen.pop(entity, None) is not None:
                at_s = (now + wall_offset_ns) / _NS_PER_S
                found.append(Happened(at_s, str(entity), Sort.GONE))
        return found

    def _changes(self, row: EntityState, now: int, wall_offset_ns: int) -> Iterator[Happened]:
        name, at_s = str(row.id), (now + wall_offset_ns) / _NS_PER_S
        before = self._seen.get(row.id, _NOTHING)
        facts, by = _facts(row)
        known_before = dict(before.facts)
        for one in sorted(facts.keys() | known_before.keys()):
            if (value := facts.get(one)) != known_before.get(one):
                yield Happened(at_s, name, Sort.SEEN, one, value, by.get(one))
        tried = [one for one in row.attempts.tried if one.at > before.tried_at]
        for end in tried:
            ended_s = (end.at + wall_offset_ns) / _NS_PER_S
            value = "worked" if end.worked else "failed"
            yield Happened(ended_s, name, Sort.TRIED, end.path, value, end.outcome)
        if (row.stance.condition, row.stance.why) != (before.condition, before.why):
            yield Happened(
                at_s, name, Sort.STANDS, None, row.stance.condition.value, row.stance.why
            )
        tried_at = tried[-1].at if tried else before.tried_at
        seen = _alike(tuple(facts.items()))
        self._seen[row.id] = _Seen(seen, row.stance.condition, row.stance.why, tried_at)


@lru_cache(ALIKE_CACHED_MAX)
def _alike(facts: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The same tuple for all entities with the same history: there are many."""
    return facts


def _facts(row: EntityState) -> tuple[dict[str, str], dict[str, str]]:
    """Each variable's value, as a chain names it, and who saw it."""
    facts = {name: f"{row.value(name, fact)}?" for name, fact in row.belief.remembered.items()}
    facts |= {name: row.value(name, fact) for name, fact in row.belief.known.items()}
    by = {
        name: fact.by for name, fact in (*row.belief.remembered.items(), *row.belief.known.items())
    }
    return facts, by
