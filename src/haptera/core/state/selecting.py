"""The entities that a selector matches: by their state, or, for rules, by name and attribute."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from heapq import merge
from typing import Final

from haptera.core.state.allowance import READ_AT_ONCE, READING_EACH
from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.kinds import KINDS, node
from haptera.kinds.extensions import node_kind
from haptera.model.declared.schema import Attribute, Plain, Variable
from haptera.model.entity import EntityId, node_id
from haptera.planner.domain.pieces import Pieces, slices
from haptera.selectors.names import EVERY, GroupName, Groups
from haptera.selectors.selector import Selector
from haptera.selectors.selector_ast import CONDITION, NEVER_MS, NODE, Datum, StateLayer

_UNSET: Final = ""

# A node's attributes by its name; None where there is no such node.
Attributes = Callable[[str], Mapping[str, str] | None]
# The groups that a node is in, by its name and their source.
NamesOf = Callable[[str, str | None], Collection[str]]


def meant(
    table: EntityTable, selectors: Collection[Selector], now: int
) -> Pieces[list[EntityState]]:
    """The rows that all of these mean, each as it is when its turn comes."""
    found = list[EntityState]()
    groups = groups_of(table, cache(names_of(attributes_of(table))))
    for some in slices(candidates(table, selectors), READ_AT_ONCE):
        for row in some:
            subject = SeenEntity(row, table, groups, now)
            if all(selector.means(subject) for selector in selectors):
                found.append(row)
        yield READING_EACH * (1 + len(selectors)) * len(some)
    return found


def by_name(rows: Iterable[EntityState]) -> Pieces[Iterable[tuple[str, EntityState]]]:
    """Sorted slice by slice, and put together when they are taken."""
    sorted_slices = list[list[tuple[str, EntityState]]]()
    for some in slices(rows, READ_AT_ONCE):
        sorted_slices.append(sorted((str(row.id), row) for row in some))
        yield READING_EACH * len(some)
    return merge(*sorted_slices)


def means(table: EntityTable, selector: Selector, entity: EntityId, now: int) -> bool:
    """Whether the selector means this entity as it is now; never one that is not there."""
    row = table.get(entity)
    if row is None:
        return False
    groups = groups_of(table, names_of(attributes_of(table)))
    return selector.means(SeenEntity(row, table, groups, now))


def candidates(table: EntityTable, selectors: Iterable[Selector]) -> Iterable[EntityState]:
    """All rows, or those on the nodes that one of the selectors names one by one."""
    for selector in selectors:
        nodes = selector.nodes()
        if nodes is not None and nodes.count_max <= len(table):
            return (row for one in nodes.each() for row in table.on(one.name))
    return [*table]


def groups_of(table: EntityTable, names: NamesOf) -> Groups:
    """The groups that the nodes of a table are in by these names."""
    return lambda group: _Members(group, names, table.nodes)


def names_of(attributes: Attributes) -> NamesOf:
    """Which groups of a source a node is in: its attribute `groups`, or that of the source."""

    def names(node_name: str, source: str | None) -> Collection[str]:
        there = attributes(node_name)
        if there is None:
            return ()
        value = there.get(node.groups.name if source is None else source, _UNSET)
        if source is not None:
            return () if value == _UNSET else (EVERY, value)
        return EVERY, *value.replace(",", " ").split()

    return names


def attributes_of(table: EntityTable) -> Attributes:
    """The attributes of the nodes in a table."""

    def attributes(name: str) -> Mapping[str, str] | None:
        row = table.get(node_id(name))
        return None if row is None else row.desired.attributes

    return attributes


@dataclass(frozen=True, slots=True)
class Declared:
    """An entity as rules select it: by what is declared of its node."""

    id: EntityId
    attributes: Attributes

    def value(self, datum: Datum) -> str | None:
        datum = datum.resolved(KINDS)
        own = self.id.kind == NODE and datum.kind is None
        if not (own or datum.kind == NODE) or datum.layer is not StateLayer.KNOWN:
            return None
        if node_kind().attribute(datum.name) is None or self.id.node is None:
            return None
        there = self.attributes(self.id.node)
        return None if there is None else there.get(datum.name, _UNSET)

    def age_ms(self, _datum: Datum) -> int | None:
        return None

    def measured(self, _series: str) -> float | None:
        return None

    def groups(self, group: GroupName) -> Collection[str]:
        return _Members(group, names_of(self.attributes), tuple)


# Not frozen: one is made for each row that is looked at, and that would take twice as long.
@dataclass(slots=True)
class SeenEntity:
    """An entity as it is now."""

    row: EntityState
    table: EntityTable
    groups: Groups
    now: int

    @property
    def id(self) -> EntityId:
        return self.row.id

    def value(self, datum: Datum) -> str | None:
        datum = datum.resolved(self.table.kinds)
        row = self._whose(datum)
        if row is None:
            return None
        match row.kind.named(datum.name), datum.layer:
            case (Variable() | Plain(), StateLayer.DESIRED) | (Plain(), StateLayer.KNOWN):
                return _desired(row, datum.name)
            case Variable() as variable, _:
                return _value_of(row, datum, str(variable.unknown))
            case Attribute(), StateLayer.KNOWN:
                return row.desired.attributes.get(datum.name, _UNSET)
            case None, StateLayer.KNOWN if datum.name == CONDITION:
                return row.stance.condition.value
            case _:
                return None

    def age_ms(self, datum: Datum) -> int | None:
        datum = datum.resolved(self.table.kinds)
        row = self._whose(datum)
        if row is None or datum.layer is not StateLayer.KNOWN:
            return None
        if row.kind.variable(datum.name) is not None:
            fact = row.belief.known.get(datum.name) or row.belief.remembered.get(datum.name)
            return NEVER_MS if fact is None else max(0, self.now - fact.at) // MS
        return row.stance.lasted(self.now) // MS if datum.name == CONDITION else None

    def measured(self, series: str) -> float | None:
        return self.table.measured(self.row.id, series)

    def _whose(self, datum: Datum) -> EntityState | None:
        if datum.kind in (None, self.row.id.kind):
            return self.row
        return self.table.node_of(self.row) if datum.kind == NODE else None


@dataclass(frozen=True, slots=True)
class _Members(Collection[str]):
    """The nodes of a group."""

    group: GroupName
    names: NamesOf
    nodes: Callable[[], Iterable[str]]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.group.name in self.names(name, self.group.source)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.nodes() if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _value_of(row: EntityState, datum: Datum, unknown: str) -> str:
    fact = row.belief.known.get(datum.name)
    if fact is None and datum.layer is StateLayer.LAST:
        fact = row.belief.remembered.get(datum.name)
    return unknown if fact is None else row.value(datum.name, fact)


def _desired(row: EntityState, name: str) -> str:
    desired = row.desired.values.get(name)
    return _UNSET if desired is None else str(desired.value)
