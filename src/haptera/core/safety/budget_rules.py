"""What people declared of budgets, and of which nodes, groups and parents each entity counts."""

from collections import Counter

from haptera.core.safety.budgets import Where
from haptera.core.state.row import EntityState
from haptera.core.state.selecting import Declared, attributes_of
from haptera.core.state.table import EntityTable
from haptera.kinds.node import fault_group, rack
from haptera.kinds.rules import budget
from haptera.kinds.rules.budget import Budget, Per
from haptera.model.entity import EntityId, node_id
from haptera.selectors.selector import ALL, parse_selector


class BudgetRules:
    """What holds now, by the table."""

    def __init__(self, table: EntityTable) -> None:
        self._table = table
        self._limits: tuple[list[tuple[EntityId, int]], tuple[Budget, ...]] = [], ()
        self._sizes: tuple[int, Counter[str | None]] = -1, Counter()

    def declared(self, entity: EntityId) -> list[Budget]:
        """What people declared for this entity."""
        rows = self._table.of_cluster(budget.kind.name)
        # An agent may be told of an older change after a newer one: the table's revision stays.
        revisions = [(row.id, row.desired.revision) for row in rows]
        if revisions != self._limits[0]:
            limits = tuple(_budget(row) for row in rows if budget.per.name in row.desired.values)
            self._limits = revisions, limits
        subject = Declared(entity, attributes_of(self._table))
        return [one for one in self._limits[1] if one.of.means(subject)]

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
        node = None if entity.node is None else self._table.get(node_id(entity.node))
        return {Per.NODE: entity.node, Per.GROUP: group_of(node), Per.PARENT: None}


def _budget(row: EntityState) -> Budget:
    data = row.plain()
    return Budget(
        Per(str(data[budget.per.name])),
        parse_selector(str(data.get(budget.of.name, ALL))),
        _number(data.get(budget.at_once.name)),
        _number(data.get(budget.share.name)),
        _number(data.get(budget.per_hour.name)),
    )


def _number(value: str | int | None) -> int | None:
    return None if value is None else int(value)


def group_of(node: EntityState | None) -> str | None:
    """What a node may fail together with: its fault group, or else its rack."""
    if node is None:
        return None
    return node.desired.attributes.get(fault_group.name) or node.desired.attributes.get(rack.name)
