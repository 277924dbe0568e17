"""The gates that answer for a node: on which side, and whether any of them ever can."""

from collections.abc import Mapping
from typing import Final

from haptera.core.modules.catalog import Catalog
from haptera.core.state.row import EntityState
from haptera.kinds.node import HAS_AGENT_NEVER, JOBS_NONE, has_agent, if_lost, jobs
from haptera.model.parts import Context

NEVER: Final = "it needs a permit, and the node has neither an agent nor a gate at the parent"
# The value of the node's attribute `if_lost` that lets a node be recovered without its word.
IF_LOST_RECOVER: Final = "recover"
MEND: Final = "a gate at the parent, or `jobs: none`"


def gates_at_parent(catalog: Catalog, node: EntityState) -> list[str]:
    """The gates that answer for this node from outside: those with a part in its class."""
    gates = catalog.gates(Context.PARENT)
    if not gates:
        return []
    domain = catalog.domain(node, node)
    serving = {look.module for look in domain.looks} | {step.module for step in domain.steps}
    return [name for name in gates if name in serving]


def has_no_agent(node: EntityState) -> bool:
    """Whether the node is declared never to have an agent: a switch, a machine of another's."""
    return node.desired.attributes.get(has_agent.name) == HAS_AGENT_NEVER


def recovers(node: EntityState) -> bool:
    """Whether the node may be disturbed without its word, once it was silent for long."""
    return node.desired.attributes.get(if_lost.name) == IF_LOST_RECOVER


def is_jobless(node: EntityState) -> bool:
    """Whether the node is declared never to have jobs."""
    return node.desired.attributes.get(jobs.name) == JOBS_NONE


def is_mute(attributes: Mapping[str, str]) -> bool:
    """Whether a node of these attributes says nothing of permits, neither now nor by an agent."""
    silent = attributes.get(has_agent.name) == HAS_AGENT_NEVER
    return silent and attributes.get(jobs.name) != JOBS_NONE


def never_permits(catalog: Catalog, node: EntityState) -> str | None:
    """Why nobody can ever permit that this node is disturbed; None: somebody may."""
    mute = is_mute(node.desired.attributes) and not gates_at_parent(catalog, node)
    return NEVER if mute else None
