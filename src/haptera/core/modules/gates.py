"""Which gates answer for a node, on which side, and whether any of them ever can."""

from typing import Final

from haptera.core.modules.catalog import Catalog
from haptera.core.state.row import Row
from haptera.kinds.node import HAS_AGENT_NEVER, JOBS_NONE, has_agent, jobs
from haptera.model.parts import Context

MEND: Final = "a gate at the parent that answers for it, or `jobs: none`"


def gates_at_parent(catalog: Catalog, node: Row) -> list[str]:
    """The gates that answer for this node from outside: those with a part in its class."""
    gates = catalog.gates(Context.PARENT)
    if not gates:
        return []
    domain = catalog.domain(node, node)
    serving = {look.module for look in domain.looks} | {step.module for step in domain.steps}
    return [name for name in gates if name in serving]


def has_no_agent(node: Row) -> bool:
    """Whether the node is declared never to have an agent: a switch, a machine of another's."""
    return node.attributes.get(has_agent.name) == HAS_AGENT_NEVER


def is_jobless(node: Row) -> bool:
    """Whether the node is declared never to have jobs."""
    return node.attributes.get(jobs.name) == JOBS_NONE


def never_permits(catalog: Catalog, node: Row) -> str | None:
    """Why nobody can ever permit that this node is disturbed; None: somebody may."""
    if not has_no_agent(node) or is_jobless(node) or gates_at_parent(catalog, node):
        return None
    return f"nobody can permit it: {node.id.name} has no agent, and no gate answers for it"
