"""Entities that hold for others: those of one kind, the whole cluster's, by what they are `of`."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Final

from haptera.core.state.row import EntityState
from haptera.core.state.selecting import Declared, attributes_of, candidates
from haptera.core.state.table import EntityTable
from haptera.model.changes import Desired
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.selectors.selector import Selector, parse_selector
from haptera.selectors.selector_ast import AnyOf

SELECTORS_CACHED_MAX: Final = 1024
# So many rows are asked in a turn whether rules select them: some 3 ms.
ASKED_MAX: Final = 500
NOTHING: Final = Selector("", AnyOf(()))


class Rules:
    """The rows of one kind whose plain datum `of` is a selector; those without select nothing."""

    def __init__(self, table: EntityTable, kind: str) -> None:
        self._table = table
        self._kind = kind
        self._attributes = attributes_of(table)
        self._seen: dict[EntityId, dict[str, Desired]] = {}

    def all(self) -> list[EntityState]:
        """By id."""
        return self._table.of_cluster(self._kind)

    def of(self, entity: EntityId) -> list[EntityState]:
        """Those that select an entity, by id."""
        if not (rows := self.all()):
            return []
        subject = Declared(entity, self._attributes)
        return [row for row in rows if selector_of(row.desired.values).means(subject)]

    def selected(
        self, rows: Iterable[EntityState], selectors: Collection[Selector]
    ) -> Iterator[EntityState]:
        """Those of these rows that any of the selectors selects."""
        for row in rows:
            subject = Declared(row.id, self._attributes)
            if any(selector.means(subject) for selector in selectors):
                yield row

    def few(self, selectors: Collection[Selector]) -> list[EntityState] | None:
        """The rows that any of these selects; None where there are too many to ask each."""
        asked: dict[EntityId, EntityState] = {}
        for selector in selectors:
            rows = () if selector is NOTHING else candidates(self._table, [selector])
            asked |= {row.id: row for row in islice(rows, ASKED_MAX + 1)}
        if len(asked) > ASKED_MAX:
            return None
        subjects = [(row, Declared(row.id, self._attributes)) for row in asked.values()]
        return [row for row, one in subjects if any(each.means(one) for each in selectors)]

    def changed(self) -> list[Selector]:
        """What rules that changed since this was last asked select, or selected before."""
        now = {row.id: row.desired.values for row in self.all()}
        before, self._seen = self._seen, now
        if now == before:
            return []
        return [
            selector_of(values)
            for entity in sorted(now.keys() | before.keys())
            if now.get(entity) != before.get(entity)
            for values in (before.get(entity, {}), now.get(entity, {}))
        ]

    def forget(self) -> None:
        """Take all rules for changed."""
        self._seen = {}


def selector_of(desired: Mapping[str, Desired]) -> Selector:
    """What a rule with these data selects."""
    of = desired.get("of")
    return NOTHING if of is None else _selector(str(of.value))


@lru_cache(SELECTORS_CACHED_MAX)
def _selector(text: str) -> Selector:
    """What we cannot read, though a parent of another version could, selects nothing."""
    try:
        return parse_selector(text)
    except HapteraError:
        return NOTHING
