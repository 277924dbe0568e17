"""Nodes as cells by rack: one colour for a node and all that is on it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from haptera.model.answers.views import Condition, EntityView
from haptera.selectors.nodeset import natural

_NO_RACK = "-"


class Cell(StrEnum):
    """How a node stands, the worst of it first; the page has the same words."""

    STUCK = "stuck"
    ACTING = "acting"
    WAITING = "waiting"
    GREEN = "converged"
    DARK = "dark"


_BY_CONDITION = {
    Condition.STUCK: Cell.STUCK,
    Condition.ACTING: Cell.ACTING,
    Condition.WAITING: Cell.WAITING,
}


@dataclass(slots=True)
class Board:
    """All entities as last received, and the nodes among them by rack."""

    views: dict[str, EntityView]

    def take(self, views: Iterable[EntityView], gone: Iterable[str], *, fresh: bool) -> None:
        if fresh:
            self.views.clear()
        for view in views:
            self.views[view.entity] = view
        for entity in gone:
            self.views.pop(entity, None)

    def racks(self) -> Mapping[str, list[tuple[str, Cell]]]:
        """Each rack's nodes with their cells, both in the order of their names."""
        on_node: dict[str, list[EntityView]] = {}
        for view in self.views.values():
            if view.node is not None:
                on_node.setdefault(view.node, []).append(view)
        racks: dict[str, list[tuple[str, Cell]]] = {}
        for name in sorted(on_node, key=natural):
            node = next((view for view in on_node[name] if view.kind == "node"), None)
            if node is not None:
                rack = node.attributes.get("rack", _NO_RACK)
                racks.setdefault(rack, []).append((name, cell(node, on_node[name])))
        return {rack: racks[rack] for rack in sorted(racks, key=natural)}


def cell(node: EntityView, views: Iterable[EntityView]) -> Cell:
    """The colour of a node and what is on it: the worst of all; dark while it is off."""
    found = {_BY_CONDITION[view.condition] for view in views if view.condition in _BY_CONDITION}
    for worst in (Cell.STUCK, Cell.ACTING, Cell.WAITING):
        if worst in found:
            return worst
    return Cell.GREEN if node.known_value("power") == "on" else Cell.DARK
