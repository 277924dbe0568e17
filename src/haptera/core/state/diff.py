"""The gap between the two layers: which goal an entity has, as values its parts can reach."""

from collections.abc import Iterable, Mapping

from haptera.core.state.row import EntityState
from haptera.kinds import module
from haptera.kinds.module import ModuleRun
from haptera.model.parts import Requirement
from haptera.model.schema import Applied
from haptera.planner.domain.domain import Domain


def goal(row: EntityState, domain: Domain) -> dict[str, str]:
    """The desired values of mutation variables; `applied=current` where it can be known.

    Plain data start chains too: wherever they are desired, and the other
    goals leave a look at `applied` open, what is in force is to be what is desired.
    """
    wanted = {
        name: str(one.value)
        for name, one in row.desired.items()
        if row.kind.variable(name) is not None
    }
    if row.resident and row.id.node is not None and module.run.name not in wanted:
        wanted |= _due(row)
    applied = next((one for one in row.kind.variables if one.values is Applied), None)
    if applied is None or not row.plain() or applied.name in wanted:
        return wanted
    if wanted and any(
        look.at == applied.name and _allows(look.requires, wanted) for look in domain.looks
    ):
        wanted[applied.name] = Applied.CURRENT
    return wanted


def _due(row: EntityState) -> dict[str, str]:
    """What is to come of a module that has failed, or runs, though nobody said that it should."""
    fact = row.known.get(module.run.name)
    due = fact is not None and fact.value in (ModuleRun.FAILED, ModuleRun.RUNNING)
    return {module.run.name: ModuleRun.RUNNING} if due else {}


def _allows(requires: Iterable[Requirement], wanted: Mapping[str, str]) -> bool:
    return all(one.name not in wanted or wanted[one.name] in one.values for one in requires)
