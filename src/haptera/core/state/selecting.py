"""Which entities a selector means: by their state, or, for rules, by name, group and attribute."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from haptera.core.state.limits import MS
from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.kinds import KINDS, node
from haptera.kinds.extensions import node_kind
from haptera.model.declared.schema import Attribute, Plain, Variable
from haptera.model.entity import EntityId, node_id
from haptera.selectors.names import EVERY, GroupName, Groups
from haptera.selectors.selector import Selector
from haptera.selectors.selector_ast import CONDITION, NEVER_MS, NODE, Datum, StateLayer

_UNSET: Final = ""

# A node's attributes by its name; None where there is no such node.
Attributes = Callable[[str], Mapping[str, str] | None]


def meant(table: EntityTable, selectors: Collection[Selector], now: int) -> Iterator[EntityState]:
    """The rows that all of these mean, as they are now."""
    groups = _Indexed(table)
    for row in candidates(table, selectors):
        subject = _Seen(row, table, groups, now)
        if all(selector.means(subject) for selector in selectors):
            yield row


def means(table: EntityTable, selector: Selector, entity: EntityId, now: int) -> bool:
    """Whether the selector means this entity as it is now; never one that is not there."""
    row = table.get(entity)
    if row is None:
        return False
    return selector.means(_Seen(row, table, groups_of(table), now))


def candidates(table: EntityTable, selectors: Iterable[Selector]) -> Iterable[EntityState]:
    """All rows, or those on the nodes that one of the selectors names one by one."""
    for selector in selectors:
        nodes = selector.nodes()
        if nodes is not None and nodes.count_max <= len(table):
            return (row for one in nodes.members() for row in table.on(one.name))
    return table


def groups_of(table: EntityTable) -> Groups:
    """The groups that the attributes of the nodes make."""
    attributes = attributes_of(table)
    return lambda group: _Members(group, attributes, table.nodes)


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

    def groups(self, group: GroupName) -> Collection[str]:
        return _Members(group, self.attributes, tuple)


# Not frozen: one is made for each row that is looked at, and that would take twice as long.
@dataclass(slots=True)
class _Seen:
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

    def _whose(self, datum: Datum) -> EntityState | None:
        if datum.kind in (None, self.row.id.kind):
            return self.row
        return self.table.node_of(self.row) if datum.kind == NODE else None


@dataclass(frozen=True, slots=True)
class _Members(Collection[str]):
    """The nodes of a group: by their attribute `groups`, or by that which its source names."""

    group: GroupName
    attributes: Attributes
    nodes: Callable[[], Iterable[str]]

    def __contains__(self, name: object) -> bool:
        there = self.attributes(name) if isinstance(name, str) else None
        return self.group.name in _names_in(there, self.group.source)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.nodes() if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Indexed:
    """The same groups for many questions in a row: of each source that is asked for, found once."""

    def __init__(self, table: EntityTable) -> None:
        self._table = table
        self._by_source: dict[str | None, dict[str, set[str]]] = {}

    def __call__(self, group: GroupName) -> Collection[str]:
        found = self._by_source.get(group.source)
        if found is None:
            found = self._by_source[group.source] = self._find(group.source)
        return found.get(group.name, ())

    def _find(self, source: str | None) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        attributes = attributes_of(self._table)
        for name in self._table.nodes():
            for group in _names_in(attributes(name), source):
                found.setdefault(group, set()).add(name)
        return found


def _names_in(attributes: Mapping[str, str] | None, source: str | None) -> Collection[str]:
    """The groups of a source that a node with these attributes is in; None: there is no such."""
    if attributes is None:
        return ()
    if source is None:
        named = attributes.get(node.groups.name, _UNSET)
        return EVERY, *named.replace(",", " ").split()
    value = attributes.get(source, _UNSET)
    return () if value == _UNSET else (EVERY, value)


def _value_of(row: EntityState, datum: Datum, unknown: str) -> str:
    fact = row.belief.known.get(datum.name)
    if fact is None and datum.layer is StateLayer.LAST:
        fact = row.belief.remembered.get(datum.name)
    return unknown if fact is None else row.value(datum.name, fact)


def _desired(row: EntityState, name: str) -> str:
    desired = row.desired.values.get(name)
    return _UNSET if desired is None else str(desired.value)
