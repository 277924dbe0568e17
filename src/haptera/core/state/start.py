"""An entity's state as the planner takes it: what is known and remembered of it and its node."""

from collections.abc import Mapping

from haptera.core.state.row import EntityState
from haptera.kinds.node import JOBS_NONE, Busy, busy, jobs
from haptera.planner.domain.domain import Domain


def start(
    row: EntityState, node: EntityState | None, domain: Domain, goal: Mapping[str, str]
) -> int:
    """The stripped start; its node has been stripped before, and lends what the kind borrows."""
    observed, remembered = row.seen(goal)
    observed |= row.stance.related
    if node is not None and node is not row:
        for variable in row.kind.borrows:
            if (fact := node.belief.known.get(variable.name)) is not None:
                observed[variable.path] = fact.value
            elif (fact := node.belief.remembered.get(variable.name)) is not None:
                remembered[variable.path] = fact.value
    state = domain.start(observed, remembered)
    jobless = node is not None and node.desired.attributes.get(jobs.name) == JOBS_NONE
    return _free(domain, state, busy.name if node is row else busy.path) if jobless else state


def _free(domain: Domain, state: int, name: str) -> int:
    """A node that declares that it never has jobs is free, though no look could tell now."""
    field = domain.fields.get(name)
    if field is None or field.value(state) is not None:
        return state
    if field.memory(state) not in (None, Busy.FREE):
        return state  # A module has read otherwise.
    return state & ~field.whole | field.holding((Busy.FREE,))
