"""An entity's state as the planner takes it: what is known and remembered of it and its node."""

from collections.abc import Mapping

from haptera.core.state.row import Row
from haptera.planner.domain.domain import Domain


def start(row: Row, node: Row | None, domain: Domain, goal: Mapping[str, str]) -> int:
    """The stripped start; its node has been stripped before, and lends what the kind borrows."""
    observed, remembered = row.seen(goal)
    if node is not None and node is not row:
        for variable in row.kind.borrows:
            if (fact := node.known.get(variable.name)) is not None:
                observed[variable.path] = fact.value
            elif (fact := node.remembered.get(variable.name)) is not None:
                remembered[variable.path] = fact.value
    return domain.start(observed, remembered)
