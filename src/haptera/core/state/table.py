"""All entities of one engine, by id and by node; the desired layer follows what was written."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import assert_never

from haptera.core.state.allowance import READ_AT_ONCE, READING_EACH
from haptera.core.state.entity.belief import Belief
from haptera.core.state.entity.node_report import NodeReport
from haptera.core.state.row import EntityState
from haptera.kinds.node import QUEUE, work
from haptera.model.changes import (
    Change,
    CloseIntent,
    Declare,
    Desired,
    OpenIntent,
    SetDesired,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.declared.schema import Kind
from haptera.model.entity import EntityId, node_id
from haptera.planner.domain.pieces import Pieces, slices


class EntityTable:
    """Rows by id. `revision` is that of the last desired change it holds.

    The modules `of_cluster` and, on each node, those `of_nodes` are there undeclared.
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        *,
        of_cluster: Iterable[str] = (),
        of_nodes: Iterable[str] = (),
    ) -> None:
        self.kinds = kinds
        self._modules = tuple(of_cluster), tuple(of_nodes)
        self._rows: dict[EntityId, EntityState] = {}
        # Tuples, for most nodes have few.
        self._on_node: dict[str, tuple[EntityId, ...]] = {}
        self._of_cluster: dict[str, dict[EntityId, EntityState]] = {}
        self._removed: list[EntityState] = []
        self.revision = 0
        # For selectors only; no decision depends on it.
        self.measured: Callable[[EntityId, str], float | None] = lambda _entity, _series: None
        for module in self._modules[0]:
            self.make(EntityId("module", module, None)).desired.resident = True

    def __iter__(self) -> Iterator[EntityState]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def knows(self, kind: str) -> bool:
        return kind in self.kinds

    def get(self, entity: EntityId) -> EntityState | None:
        return self._rows.get(entity)

    def node_of(self, row: EntityState) -> EntityState | None:
        """The row of the node that the entity is on; a node's own row for a node."""
        return None if row.id.node is None else self._rows.get(node_id(row.id.node))

    def attributes_of(self, node: str) -> Mapping[str, str]:
        """Those of a node; none of one that is not declared."""
        row = self._rows.get(node_id(node))
        return {} if row is None else row.desired.attributes

    def desired_of(self, node: str) -> Mapping[str, Desired]:
        """The desired values of a node; none of one that is not declared."""
        row = self._rows.get(node_id(node))
        return {} if row is None else row.desired.values

    def work_of(self, node: str) -> str | None:
        """The queue's last word on whether a node takes jobs; None where there is none."""
        row = self._rows.get(node_id(node))
        fact = None if row is None else row.belief.known.get(work.name)
        return None if fact is None or fact.by != QUEUE else fact.value

    def on(self, node: str | None) -> list[EntityState]:
        """The rows on a node, its own first, then by id; on none: the whole cluster's."""
        if node is None:
            return [row for kind in sorted(self._of_cluster) for row in self.of_cluster(kind)]
        ids = sorted(self._on_node.get(node, ()), key=lambda one: (one.kind != "node", one))
        return [self._rows[one] for one in ids]

    def nodes(self) -> list[str]:
        """The nodes that something is on, or was."""
        return sorted(self._on_node)

    def of_cluster(self, kind: str) -> list[EntityState]:
        """The rows of one kind that are the whole cluster's, by id."""
        rows = self._of_cluster.get(kind)
        return [row for _, row in sorted(rows.items())] if rows else []

    def everywhere(self) -> list[EntityState]:
        """The rows that are sent to every node, by id."""
        kinds = sorted(kind for kind in self._of_cluster if self.kinds[kind].everywhere)
        return [row for kind in kinds for row in self.of_cluster(kind)]

    def of_agent(self, node: str) -> list[EntityState]:
        """All rows that are sent to a node's agent."""
        return [*self.on(node), *self.everywhere()]

    def is_everywhere(self, entity: EntityId) -> bool:
        """Whether this entity is sent to every node, be it here or gone."""
        return entity.node is None and self.kinds[entity.kind].everywhere

    def make(self, entity: EntityId) -> EntityState:
        """The entity's row, made where there is none."""
        row = self._rows.get(entity)
        if row is None:
            row = self._rows[entity] = EntityState(entity, self.kinds[entity.kind])
            if entity.node is None:
                self._of_cluster.setdefault(entity.kind, {})[entity] = row
            else:
                self._on_node[entity.node] = *self._on_node.get(entity.node, ()), entity
            if entity.kind == "node":
                for module in self._modules[1]:
                    self.make(EntityId("module", module, entity.node)).desired.resident = True
        return row

    def remove(self, entity: EntityId) -> None:
        """Remove a row; with a node's go those on it that nobody declared."""
        row = self._rows.pop(entity, None)
        if row is None:
            return
        if entity.node is None:
            del self._of_cluster[entity.kind][entity]
        else:
            on_it = self._on_node[entity.node]
            self._on_node[entity.node] = tuple(one for one in on_it if one != entity)
        self._removed.append(row)
        if entity.kind == "node":
            for one in self.on(entity.node):
                if not one.desired.declared:
                    self.remove(one.id)

    def dismiss(self, entity: EntityId, owner: str) -> None:
        """The entity is no longer declared: bring it to what its kind leaves, or forget it.

        An agent's own node stays for as long as the agent: what leaves on it borrows of it.
        """
        row = self._rows.get(entity)
        if row is None or row.desired.leaving:
            return
        if row.desired.resident:
            self._withdraw(row)
            return
        if not row.kind.leaves and entity.name != entity.node:
            self.remove(entity)
            return
        row.link.restart()
        row.desired.leaving, row.desired.revision = True, 0
        row.desired.values = {variable.name: Desired(to, owner) for variable, to in row.kind.leaves}
        row.relent()

    def undeclare(self, entity: EntityId) -> None:
        """Nobody declares it any more: forget it, unless it is there all the same."""
        row = self._rows.get(entity)
        if row is not None and row.desired.resident:
            self._withdraw(row)
        else:
            self.remove(entity)

    def _withdraw(self, row: EntityState) -> None:
        row.desired.withdraw()
        row.link.confirmed = 0
        row.relent()

    def take_removed(self) -> list[EntityState]:
        """The rows that are gone since this was last asked."""
        removed, self._removed = self._removed, []
        return removed

    def load(self, stored: StoredEntity) -> EntityState:
        row = self.make(stored.entity)
        desired = row.desired
        desired.attributes, desired.owner = dict(stored.attributes), stored.owner
        desired.values, desired.revision = dict(stored.desired), stored.revision
        row.link.confirmed = stored.revision
        return row

    def draft(self) -> "EntityTable":
        """An empty table of the same kinds, for rows that are only considered."""
        return EntityTable(self.kinds)

    def adopt(self, row: EntityState) -> None:
        """Hold a copy of another table's row: what is desired of the copy does not touch it."""
        copy = self.load(_stored(row))
        copy.desired.resident, copy.desired.leaving = row.desired.resident, row.desired.leaving
        copy.belief = Belief(dict(row.belief.known), dict(row.belief.remembered))
        copy.report = NodeReport(dict(row.report.facts))

    def stored(self) -> tuple[StoredEntity, ...]:
        """The whole desired layer, as it is stored."""
        return tuple(_stored(row) for row in self if row.desired.declared)

    def storing(self) -> Pieces[list[StoredEntity]]:
        """As `stored`, each entity as it is when its turn comes."""
        found = list[StoredEntity]()
        for some in slices([*self], READ_AT_ONCE):
            found += (_stored(row) for row in some if row.desired.declared)
            yield READING_EACH * len(some)
        return found

    def declared(self, entity: EntityId) -> StoredEntity | None:
        """The desired layer of one entity, as it is stored."""
        row = self._rows.get(entity)
        return None if row is None or not row.desired.declared else _stored(row)

    def apply(self, change: Change, revision: int) -> EntityId | None:
        """Take over one durable change; returns the entity whose desired layer it changed."""
        self.revision = revision
        match change:
            case Declare(entity, attributes, owner):
                row = self.make(entity)
                desired = row.desired
                desired.attributes, desired.owner = dict(attributes), owner
                desired.revision = revision
                row.relent()
                return entity
            case Undeclare(entity):
                self.undeclare(entity)
                return entity
            case SetDesired(entity, name, value, owner):
                row = self.make(entity)
                # What was stored before is read on elsewhere, and stays as it was.
                row.desired.values = {**row.desired.values, name: Desired(value, owner)}
                row.desired.revision = revision
                row.relent()
                return entity
            case UnsetDesired(entity, name):
                row = self.make(entity)
                row.desired.values = {n: one for n, one in row.desired.values.items() if n != name}
                row.desired.revision = revision
                row.relent()
                return entity
            case OpenIntent() | CloseIntent():
                return None
            case _:
                assert_never(change)


def _stored(row: EntityState) -> StoredEntity:
    held = row.desired
    return StoredEntity(row.id, held.attributes, held.owner, held.values, held.revision)
