"""What entities take of the node that they are on: whom a change of the node concerns."""

from collections.abc import Collection

from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.kinds.node import agent
from haptera.model.chain import Chain, Do


def lend(turn: Turn, table: EntityTable, node: EntityState, borrowed: Collection[str]) -> None:
    """Have all on a node be decided on where what is `borrowed` of it, or declared, has changed.

    All else that is known of it may only matter to who is about to disturb something.
    """
    facts = sorted((name, fact.value) for name, fact in node.belief.known.items())
    # Where an agent is not heard, that is told of what it has to do.
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
