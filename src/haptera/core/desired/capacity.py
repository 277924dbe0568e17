"""The number of nodes that may be kept from jobs at once, as budgets of work say."""

from collections.abc import Mapping, Sequence
from typing import Final

from haptera.core.state.row import EntityState
from haptera.core.state.selecting import Declared, attributes_of
from haptera.core.state.table import EntityTable
from haptera.kinds import node
from haptera.kinds.node import NodeWork
from haptera.kinds.rules import budget
from haptera.kinds.rules.budget import Per, budget_of
from haptera.model.changes import Change, SetDesired, Undeclare, UnsetDesired
from haptera.model.entity import EntityId
from haptera.planner.domain.pieces import Pieces, slices

# Work, in moves that a search could try: going through a change, and asking whether it is meant.
PASSING: Final = 1
ASKING_EACH: Final = 5
AT_ONCE: Final = 100
SHOWN_MAX: Final = 4
# Whose words are not refused: a pool, or the care for health, has limits of its own.
CONTROLLER: Final = "controller:"


def checking_work(table: EntityTable, changes: Sequence[Change]) -> Pieces[str | None]:
    """The first budget of work that a write would go beyond, and who uses it up.

    Refused rather than put off: a node is kept from jobs from the moment that this is desired.
    Where too many are already, any of them may be opened, or be kept for another reason.
    """
    closed, asked = yield from _closed(table, changes)
    rules = [row for row in table.of_cluster(budget.kind.name) if _is_of_work(row)]
    if not asked or not rules:
        return None
    for rule in rules:
        limit, attributes = budget_of(rule.plain()), attributes_of(table)
        meant = list[EntityId]()
        for some in slices([row.id for row in table if row.id.kind == node.kind.name], AT_ONCE):
            meant.extend(one for one in some if limit.of.means(Declared(one, attributes)))
            yield ASKING_EACH * len(some)
        kept = [one for one in meant if closed.get(one, _is_closed(table, one))]
        most = limit.at_once_max(len(meant))
        if most is not None and len(kept) > most and not asked.isdisjoint(kept):
            return _told(rule, kept, most, asked)
    return None


def _closed(
    table: EntityTable, changes: Sequence[Change]
) -> Pieces[tuple[Mapping[EntityId, bool], set[EntityId]]]:
    """Of the nodes of a write: closed to jobs after it or not; and those that it closes."""
    closed, asked = dict[EntityId, bool](), set[EntityId]()
    for some in slices(changes, AT_ONCE):
        for change in some:
            match change:
                case SetDesired(entity, node.work.name, value, owner) if entity.kind == "node":
                    closed[entity] = value != NodeWork.OPEN
                    counts = value not in (NodeWork.OPEN, NodeWork.FAILED)
                    if counts and not _is_closed(table, entity) and not _is_of_controller(owner):
                        asked.add(entity)
                case UnsetDesired(entity, node.work.name) | Undeclare(entity):
                    closed[entity] = False
                case _:
                    pass
        yield PASSING * len(some)
    return closed, asked


def _told(rule: EntityState, kept: Sequence[EntityId], most: int, asked: set[EntityId]) -> str:
    """In words: how many would be kept from jobs, and which are already."""
    others = sorted(one.name for one in kept if one not in asked)
    more = ", …" if len(others) > SHOWN_MAX else ""
    are = f"; {', '.join(others[:SHOWN_MAX])}{more} are" if others else ""
    return f"{rule.id} lets {most} of its nodes be kept from jobs at once, not {len(kept)}{are}"


def _is_of_work(row: EntityState) -> bool:
    said = row.desired.values.get(budget.per.name)
    return said is not None and said.value == Per.WORK


def _is_closed(table: EntityTable, entity: EntityId) -> bool:
    row = table.get(entity)
    said = None if row is None else row.desired.values.get(node.work.name)
    return said is not None and said.value != NodeWork.OPEN


def _is_of_controller(owner: str) -> bool:
    return owner.startswith(CONTROLLER)
