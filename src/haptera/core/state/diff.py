"""The gap between the two layers: which goal an entity has, as values its parts can reach."""

from collections.abc import Mapping

from haptera.core.state.row import EntityState
from haptera.kinds import module, node
from haptera.kinds.module import ModuleRun
from haptera.kinds.node import AS_DESIRED, NodeWork
from haptera.model.declared.schema import Applied
from haptera.model.parts import Requirement
from haptera.planner.domain.domain import Domain


def goal(row: EntityState, domain: Domain) -> dict[str, str]:
    """The desired values of mutation variables, as they read; `applied=current` where knowable.

    Plain data start chains too: wherever they are desired, and the other goals lead to a look at
    `applied`, what is in force is to be what is desired.
    """
    wanted = {
        name: variable.goal(str(one.value))
        for name, one in row.desired.values.items()
        if (variable := row.kind.variable(name)) is not None
        and (not variable.heeded or _is_brought(name, domain))
    }
    if node.work.name not in row.desired.values and _is_released(row):
        wanted[node.work.name] = NodeWork.OPEN
    if row.desired.resident and row.id.node is not None and module.run.name not in wanted:
        wanted |= _due(row)
    names = [one.name for one in row.kind.in_force]
    if not names or not _is_due(row, domain, wanted, names[0]):
        return wanted
    return wanted | {name: str(Applied.CURRENT) for name in names if row.plain(name)}


def _is_brought(name: str, domain: Domain) -> bool:
    """True if steps of the class bring about what is desired of this variable."""
    return any(name == change.variable for step in domain.steps for change in step.changes)


def _is_released(row: EntityState) -> bool:
    """True of a node that is kept from jobs as was desired, and is not any more."""
    fact = row.belief.known.get(node.work.name)
    return fact is not None and fact.note == AS_DESIRED and row.id.kind == node.kind.name


def _is_due(row: EntityState, domain: Domain, wanted: Mapping[str, str], name: str) -> bool:
    """Whether what this variable compares is to be in force."""
    if not wanted or name in wanted or not row.plain(name):
        return False
    looks = (look for look in domain.looks if look.at == name)
    return any(all(_leads_to(row, one, wanted) for one in look.requires) for look in looks)


def _due(row: EntityState) -> dict[str, str]:
    """What is to come of a module that has failed, or runs, though nobody said that it should."""
    fact = row.belief.known.get(module.run.name)
    due = fact is not None and fact.value in (ModuleRun.FAILED, ModuleRun.RUNNING)
    return {module.run.name: ModuleRun.RUNNING} if due else {}


def _leads_to(row: EntityState, one: Requirement, wanted: Mapping[str, str]) -> bool:
    """Whether what is wanted of an entity's own variables makes this so."""
    return row.kind.variable(one.name) is None or wanted.get(one.name) in one.values
