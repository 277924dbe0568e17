"""Declared budgets, and the nodes, groups and parents that each entity counts in."""

from collections import Counter
from typing import Final

from haptera.core.safety.budgets import Where
from haptera.core.state.limits import S
from haptera.core.state.row import EntityState
from haptera.core.state.selecting import Declared, attributes_of
from haptera.core.state.table import EntityTable
from haptera.kinds.node import fault_group, rack
from haptera.kinds.rules import budget
from haptera.kinds.rules.budget import Budget, Per, budget_of
from haptera.kinds.service import kind as service_kind
from haptera.kinds.service import max_unavailable, parse_unavailable
from haptera.model.entity import EntityId, node_id
from haptera.selectors.selector import ALL, parse_selector

# How old the reading of an absent one may be. A place is kept until its holder serves again.
AWAY_FOR_NS: Final = S


class BudgetRules:
    """What holds now, by the table."""

    def __init__(self, table: EntityTable) -> None:
        self._table = table
        self._limits: tuple[list[tuple[EntityId, int]], tuple[Budget, ...]] = [], ()
        self._sizes: tuple[int, Counter[str | None]] = -1, Counter()
        self._services: tuple[int, dict[str, list[EntityId]]] = -1, {}
        # Who serves nobody, by service, until then: one look at very many serves all that ask.
        self._away: dict[str, tuple[int, frozenset[EntityId]]] = {}

    def declared(self, entity: EntityId) -> list[Budget]:
        """What people declared for this entity."""
        rows = self._table.of_cluster(budget.kind.name)
        # An agent may receive an older change after a newer one: the table's revision stays.
        revisions = [(row.id, row.desired.revision) for row in rows]
        if revisions != self._limits[0]:
            limits = tuple(
                budget_of(row.plain()) for row in rows if budget.per.name in row.desired.values
            )
            self._limits = revisions, limits
        subject = Declared(entity, attributes_of(self._table))
        ruled = [one for one in self._limits[1] if one.of.means(subject)]
        return [*ruled, *_own(self._table.get(entity))]

    def size(self, group: str | None) -> int:
        """How many nodes a group has, None for all."""
        revision, sizes = self._sizes
        if revision != self._table.revision:
            nodes = [row for row in self._table if row.kind.name == "node"]
            sizes = Counter(group_of(node) for node in nodes if group_of(node) is not None)
            sizes[None] = len(nodes)
            self._sizes = self._table.revision, sizes
        return sizes[group]

    def where(self, entity: EntityId) -> Where:
        if (name := self._service_of(entity)) is not None:
            return {Per.SERVICE: name}
        node = None if entity.node is None else self._table.get(node_id(entity.node))
        return {Per.NODE: entity.node, Per.GROUP: group_of(node), Per.PARENT: None}

    def instances(self, name: str) -> int:
        """How many a service has that are to serve, wherever they are."""
        return len(self._members(name))

    def away(self, name: str, now: int) -> frozenset[EntityId]:
        """Those that are to serve, and are known not to."""
        until, away = self._away.get(name, (0, frozenset[EntityId]()))
        if now >= until:
            rows = (self._table.get(one) for one in self._members(name))
            away = frozenset(row.id for row in rows if row is not None and is_away(row))
            self._away[name] = now + AWAY_FOR_NS, away
        return away

    def _members(self, name: str) -> list[EntityId]:
        revision, members = self._services
        if revision != self._table.revision:
            members = {}
            for row in self._table:
                if is_to_serve(row) and (of := self._service_of(row.id)) is not None:
                    members.setdefault(of, []).append(row.id)
            self._services = self._table.revision, members
        return members.get(name, [])

    def _service_of(self, entity: EntityId) -> str | None:
        kind = self._table.kinds.get(entity.kind)
        return None if kind is None or kind.serves is None else kind.serves.service(entity.name)


def is_to_serve(row: EntityState) -> bool:
    """Whether somebody is to be served by it."""
    serves = row.kind.serves
    if serves is None or row.desired.leaving:
        return False
    desired = row.desired.values.get(serves.variable.name)
    return desired is not None and desired.value == serves.value


def is_serving(row: EntityState) -> bool:
    """Whether somebody is served by it, as was read last."""
    serves = row.kind.serves
    fact = None if serves is None else row.belief.known.get(serves.variable.name)
    return serves is not None and fact is not None and fact.value == serves.value


def is_away(row: EntityState) -> bool:
    """Whether nobody is served by it, as is known, though somebody is to be."""
    serves = row.kind.serves
    read = serves is not None and serves.variable.name in row.belief.known
    return read and is_to_serve(row) and not is_serving(row)


def _own(row: EntityState | None) -> list[Budget]:
    """What an entity itself says of how many of its like may be away."""
    said = None if row is None else row.plain().get(max_unavailable.name)
    if row is None or row.kind is not service_kind or said is None:
        return []
    most = parse_unavailable(str(said))
    return [Budget(Per.SERVICE, parse_selector(ALL), most.at_once, most.share)]


def group_of(node: EntityState | None) -> str | None:
    """What a node may fail together with: its fault group, or else its rack."""
    if node is None:
        return None
    return node.desired.attributes.get(fault_group.name) or node.desired.attributes.get(rack.name)
