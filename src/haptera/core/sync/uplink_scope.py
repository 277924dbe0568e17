"""What a link to the parent above is about: an agent's own node, or the nodes of a parent below."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from haptera.core.state.row import EntityState
from haptera.core.state.side import PARENT
from haptera.core.state.table import EntityTable
from haptera.model.entity import EntityId, node_id
from haptera.model.facts import Fact
from haptera.model.views import Condition

# A variable's name, what is believed of it, and whether that is known, or remembered only.
NamedFact = tuple[str, Fact, bool]


class UplinkScope(Protocol):
    """Which entities a parent above may speak of, and what it is told of each."""

    def rows(self) -> list[EntityState]:
        """All that is there of its nodes."""

    def includes(self, node: str) -> bool:
        """Whether the parent above may desire something of what is on this node."""

    def reports(self, row: EntityState) -> bool:
        """Whether the parent above is told how this is."""

    def facts(self, row: EntityState) -> list[NamedFact]:
        """What is told of its values."""

    def stands(self, row: EntityState) -> bool:
        """Whether it is told where it stands."""

    def leave(self, entity: EntityId) -> None:
        """The parent above desires nothing of it any more, nor that it be there."""

    def heard(self) -> tuple[EntityId, ...]:
        """What is decided on anew once the parent above is heard again, or is lost."""


@dataclass(frozen=True, slots=True)
class NodeScope:
    """Of an agent: its own node. What it does not look at itself is its parent's to know."""

    table: EntityTable
    node: str
    here: set[tuple[str, str]]

    def rows(self) -> list[EntityState]:
        return self.table.on(self.node)

    def includes(self, node: str) -> bool:
        return node == self.node

    def reports(self, row: EntityState) -> bool:
        return row.id.node == self.node

    def facts(self, row: EntityState) -> list[NamedFact]:
        return [one for one in _facts(row) if (row.kind.name, one[0]) in self.here]

    def stands(self, row: EntityState) -> bool:
        return row.stance.condition is not Condition.IDLE

    def leave(self, entity: EntityId) -> None:
        self.table.dismiss(entity, PARENT)

    def heard(self) -> tuple[EntityId, ...]:
        return (node_id(self.node),)


@dataclass(frozen=True, slots=True)
class SubtreeScope:
    """Of a parent below: all nodes that it is told of, and all that is known of those it `keeps`.

    What leaves is at once gone here, as at the root: it is the agents who bring it to an end.
    """

    table: EntityTable
    keeps: Callable[[str | None], bool]

    def rows(self) -> list[EntityState]:
        return [row for node in self.table.nodes() for row in self.table.on(node)]

    def includes(self, node: str) -> bool:
        return True

    def reports(self, row: EntityState) -> bool:
        return row.id.node is not None and self.keeps(row.id.node)

    def facts(self, row: EntityState) -> list[NamedFact]:
        return _facts(row)

    def stands(self, row: EntityState) -> bool:
        return True

    def leave(self, entity: EntityId) -> None:
        self.table.undeclare(entity)

    def heard(self) -> tuple[EntityId, ...]:
        return ()


def _facts(row: EntityState) -> list[NamedFact]:
    facts = [(name, fact, True) for name, fact in row.belief.known.items()]
    return [*facts, *((name, fact, False) for name, fact in row.belief.remembered.items())]
