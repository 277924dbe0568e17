"""Values that entities borrow from their node and related ones, and who depends on a change."""

from collections.abc import Collection

from haptera.core.modules.catalog import Catalog
from haptera.core.state.entity.verdict import Verdict
from haptera.core.state.related import related_to
from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.kinds.node import agent
from haptera.model.answers.views import Condition
from haptera.model.chain import Chain, Do, Reason
from haptera.model.entity import EntityId


def touch_borrowers(turn: Turn, table: EntityTable, row: EntityState, catalog: Catalog) -> None:
    """Have all that borrow from this entity be decided on anew where that has changed."""
    if row is table.node_of(row):
        _lend_to_residents(turn, table, row, catalog.borrowed)
    elif row.kind.name in catalog.related:
        lent = hash(tuple(sorted((name, one.value) for name, one in row.belief.known.items()))), 0
        if row.stance.lent != lent:
            row.stance.lent = lent
            touch_dependent(turn, table, row, catalog)


def touch_dependent(turn: Turn, table: EntityTable, row: EntityState, catalog: Catalog) -> None:
    """Have all that are on this node, or related to this entity, be decided on anew."""
    if row.kind.name == "node":
        turn.dirty.update(one.id for one in table.on(row.id.name))
    elif row.kind.name in catalog.related:
        for one in table:
            if one.kind.related and any(
                entity == row.id for _, entity in related_to(one, table.node_of(one))
            ):
                turn.dirty.add(one.id)


def waiting_for(
    table: EntityTable, row: EntityState, reason: Reason, again_at: int | None
) -> Verdict:
    """It waits for what it borrows; of related entities it says which would have to change."""
    awaited = dict(reason.waits_for)
    told = [
        _which(table, relation.by.name, entity)
        for relation, entity in related_to(row, table.node_of(row))
        if str(relation) in awaited
    ]
    if not told:
        return Verdict(Condition.WAITING, reason.text, again_at=again_at)
    needs = "; ".join(told)
    return Verdict(Condition.WAITING, f"{reason.text} ({needs})", needs, again_at=again_at)


def _which(table: EntityTable, by: str, entity: EntityId | None) -> str:
    if entity is None:
        return f"its {by} is not set"
    return f"{entity}" if table.get(entity) else f"{entity} is not declared"


def _lend_to_residents(
    turn: Turn, table: EntityTable, node: EntityState, borrowed: Collection[str]
) -> None:
    """Have all on a node be decided on where what is `borrowed` of it, or declared, has changed.

    All else that is known of it may only matter to who is about to disturb something.
    """
    facts = sorted((name, fact.value) for name, fact in node.belief.known.items())
    # Where an agent is not heard, that is the reason shown for its work.
    of_all = [fact for fact in facts if fact[0] in borrowed or fact[0] == agent.name]
    lent = hash((*of_all, *sorted(node.desired.attributes.items()))), hash((*facts,))
    if (before := node.stance.lent) == lent:
        return
    node.stance.lent = lent
    concerns_all = before is None or before[0] != lent[0]
    turn.dirty.update(
        row.id
        for row in table.on(node.id.node)
        if row is not node and (concerns_all or _is_to_disturb(row))
    )


def _is_to_disturb(row: EntityState) -> bool:
    """Whether a disruptive step is under way on it, or comes next."""
    if row.work.stepping is not None:
        return row.work.stepping.step.disruptive
    plan = row.stance.plan
    if not isinstance(plan, Chain) or not plan.links:
        return False
    return isinstance(plan.links[0], Do) and plan.links[0].step.disruptive
