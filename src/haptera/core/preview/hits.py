"""The harm of a plan: running services, of any user, and nodes with jobs."""

from collections.abc import Iterable, Mapping
from typing import Final

from haptera.core.preview.draft import folded
from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.kinds import service
from haptera.kinds.node import Busy, busy
from haptera.model.entity import EntityId, node_id
from haptera.planner.domain.pieces import Pieces
from haptera.selectors.selector import fold_entities

# Work, in moves tried, of some 60 ns each: how an entity stands, one name of many that are folded.
LOOKING: Final = 80
FOLDING: Final = 20


def serves_on(row: EntityState, goal: Mapping[str, str]) -> bool:
    """Whether somebody is to be served by it afterwards: who stops for good waits for nobody."""
    serves = row.kind.serves
    return serves is not None and goal.get(serves.variable.name, serves.value) == serves.value


def serving(table: EntityTable, entities: Iterable[EntityId]) -> Pieces[list[str]]:
    """The nodes of those that serve now, or did when they were last seen."""
    found: list[EntityId] = []
    for entity in entities:
        yield LOOKING
        row = table.get(entity)
        if row is not None and _serves(row):
            found.append(entity)
    return [one.node for one in found if one.node is not None]


def hit(table: EntityTable, nodes: Iterable[str]) -> Pieces[str | None]:
    """The services that run on these nodes, or did when they were last seen."""
    found: list[EntityId] = []
    for name in nodes:
        yield LOOKING
        found += [row.id for row in table.on(name) if _runs(row)]
    yield FOLDING * len(found)
    return fold_entities(found) if found else None


def _runs(row: EntityState) -> bool:
    """Whether it is a service that runs, or did when it was last seen."""
    return row.kind is service.kind and _serves(row)


def _serves(row: EntityState) -> bool:
    """Whether somebody is served by it, or was when it was last seen."""
    serves = row.kind.serves
    if serves is None:
        return False
    name = serves.variable.name
    fact = row.belief.known.get(name) or row.belief.remembered.get(name)
    return fact is not None and fact.value == serves.value


def waits(table: EntityTable, nodes: Iterable[str]) -> Pieces[str | None]:
    """Those of these nodes that have jobs, or had when they were last seen."""
    busy_ones: list[str] = []
    for name in nodes:
        yield LOOKING
        row = table.get(node_id(name))
        if row is not None and _is_busy(row):
            busy_ones.append(name)
    yield FOLDING * len(busy_ones)
    return folded(busy_ones)


def _is_busy(row: EntityState) -> bool:
    fact = row.belief.known.get(busy.name) or row.belief.remembered.get(busy.name)
    return fact is not None and fact.value == Busy.BUSY
