"""How entities would stand after changes that nobody has written, and which of them go elsewhere.

Only what the changes reach is drafted: they themselves, and what is on a node whose attributes
change.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from haptera.core.catalog import Catalog
from haptera.core.diff import goal as goal_of
from haptera.core.knowledge import Domain
from haptera.core.rows.row import Row
from haptera.core.rows.table import Table
from haptera.core.state import start
from haptera.kinds import node
from haptera.model.changes import Change, CloseIntent, Declare, OpenIntent, Undeclare
from haptera.model.entity import EntityId
from haptera.model.nodeset import fold
from haptera.model.plan import Rewrite

NODE: Final = node.kind.name
_NOTHING: Final = (None, None)


@dataclass(frozen=True, slots=True)
class Case:
    """Entities of one class and title that would stand alike and should be alike.

    `row` and `node` are those of one of them.
    """

    row: Row
    node: Row | None
    domain: Domain
    state: int
    goal: Mapping[str, str]
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Draft:
    """What changes rewrite, the cases that they make, and whom they would have stay as they are."""

    rewrites: list[Rewrite]
    cases: list[Case]
    stays: Collection[EntityId]


def draft(table: Table, catalog: Catalog, changes: Collection[Change]) -> Draft:
    """What would come of changes that can be written."""
    reached = _reached(table, changes)
    drafted = table.copy(reached)
    for change in changes:
        if isinstance(change, Undeclare):
            drafted.dismiss(change.entity, "")
        else:
            drafted.apply(change, 0)
    cases: dict[tuple[object, ...], Case] = {}
    stays: dict[EntityId, None] = {}
    for entity in sorted(reached, key=str):
        row = drafted.get(entity)
        case = None if row is None else _way(row, _node_of(row, drafted, table), catalog)
        if row is None or case is None:
            stays[entity] = None
        elif not _goes_anyway(case, table, catalog):
            key = title(entity), case.domain, case.state, tuple(sorted(case.goal.items()))
            cases.setdefault(key, case).rows.append(row)
    return Draft(_rewrites(reached, table, drafted), [*cases.values()], stays)


def title(entity: EntityId) -> str:
    """What an entity is without where it is."""
    return entity.kind if entity.kind == NODE else f"{entity.kind} {entity.name}"


def folded(entities: Iterable[EntityId]) -> str | None:
    """On which nodes they are; None where they are the whole cluster's."""
    nodes = [one.node for one in entities if one.node is not None]
    return fold(nodes) if nodes else None


def _reached(table: Table, changes: Iterable[Change]) -> dict[EntityId, None]:
    """All that the changes name, and what is on nodes whose attributes change."""
    reached: dict[EntityId, None] = {}
    for change in changes:
        assert not isinstance(change, OpenIntent | CloseIntent), "these are not for people"
        reached[change.entity] = None
        if isinstance(change, Declare) and change.entity.kind == NODE:
            there = table.get(change.entity)
            if there is not None and there.attributes != change.attributes:
                reached |= dict.fromkeys(row.id for row in table.on(change.entity.name))
    return reached


def _way(row: Row, on: Row | None, catalog: Catalog) -> Case | None:
    """The row's way to its goal, as it stands; None where there is none to go."""
    if row.resident and row.id.node is None:
        return None
    domain = catalog.domain(row, on)
    goal = goal_of(row, domain)
    if not goal:
        return None
    state = start(row, on, domain, goal)
    return None if domain.meets(state, goal) else Case(row, on, domain, state, goal, [])


def _goes_anyway(case: Case, table: Table, catalog: Catalog) -> bool:
    """Whether it goes that way as things are, without any change."""
    there = table.get(case.row.id)
    now = None if there is None else _way(there, table.node_of(there), catalog)
    return now is not None and (now.domain, now.state, now.goal) == (
        case.domain, case.state, case.goal,
    )  # fmt: skip


def _node_of(row: Row, drafted: Table, table: Table) -> Row | None:
    """The row of its node, as drafted, or as it is where the changes do not reach it."""
    on = drafted.node_of(row)
    return table.node_of(row) if on is None else on


def _rewrites(reached: Iterable[EntityId], table: Table, drafted: Table) -> list[Rewrite]:
    """What becomes of each value, told once for all entities with the same title."""
    alike: dict[Rewrite, list[EntityId]] = {}
    for entity in reached:
        before, after = _values(table.get(entity)), _values(drafted.get(entity))
        for name in sorted(before.keys() | after.keys(), key=lambda name: name or ""):
            was, becomes = before.get(name, _NOTHING), after.get(name, _NOTHING)
            if was != becomes:
                told = Rewrite(title(entity), None, 0, name, *was, *becomes)
                alike.setdefault(told, []).append(entity)
    return [
        msgspec.structs.replace(told, on=folded(entities), entities=len(entities))
        for told, entities in alike.items()
    ]


def _values(row: Row | None) -> dict[str | None, tuple[str | int, str]]:
    """All that is desired of it, by name, each with its owner; under None its attributes."""
    if row is None or not row.declared or row.leaving:
        return {}
    attributes = msgspec.json.encode(row.attributes, order="sorted").decode()
    values: dict[str | None, tuple[str | int, str]] = {None: (attributes, row.owner)}
    for name, one in row.desired.items():
        values[name] = one.value, one.owner
    return values
