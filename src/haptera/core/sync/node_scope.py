"""The scope of an agent's link to its parent: everything on its node."""

from dataclasses import dataclass

from haptera.core.state.row import EntityState
from haptera.core.state.side import PARENT
from haptera.core.state.table import EntityTable
from haptera.model.answers.views import Condition
from haptera.model.entity import EntityId, node_id
from haptera.model.facts import Fact

# A variable's name, what is believed of it, and whether that is known, or remembered only.
NamedFact = tuple[str, Fact, bool]


@dataclass(frozen=True, slots=True)
class NodeScope:
    """The entities that the parent may speak of, and what it receives of each.

    What this side does not look at itself, `here`, is its parent's to know.
    """

    table: EntityTable
    node: str
    here: set[tuple[str, str]]

    def rows(self) -> list[EntityState]:
        """All that is there of its node."""
        return self.table.on(self.node)

    def reports(self, row: EntityState) -> bool:
        """Whether the parent receives its readings."""
        return row.id.node == self.node

    def facts(self, row: EntityState) -> list[NamedFact]:
        """The statements on its values."""
        facts = [(name, fact, True) for name, fact in row.belief.known.items()]
        facts += [(name, fact, False) for name, fact in row.belief.remembered.items()]
        return [one for one in facts if (row.kind.name, one[0]) in self.here]

    def stands(self, row: EntityState) -> bool:
        """Whether the parent receives its condition."""
        return row.stance.condition is not Condition.IDLE

    def leave(self, entity: EntityId) -> None:
        """The parent desires nothing of it any more, nor that it be there."""
        self.table.dismiss(entity, PARENT)

    def heard(self) -> tuple[EntityId, ...]:
        """What is decided on anew once the parent is heard again, or is lost."""
        return (node_id(self.node),)
