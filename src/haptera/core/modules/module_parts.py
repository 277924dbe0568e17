"""The parts that a parent plans with for the modules of a node's agent, which alone runs them."""

from typing import Final

from haptera.kinds import module, node
from haptera.kinds.module import ModuleRun
from haptera.kinds.node import Agent
from haptera.model.declared.schema import Applied
from haptera.model.parts import ANY, Change, Context, Look, Manifest, Requirement, Step

BY: Final = "supervise"

_UP: Final = (Requirement(node.agent.path, (Agent.UP,)),)
_RUNS: Final = (*_UP, Requirement(module.run.name, (ModuleRun.RUNNING,)))


def _look(name: str, at: str, outcomes: tuple[str, ...], requires: tuple[Requirement, ...]) -> Look:
    return Look(BY, name, module.kind.name, at, outcomes, requires)


def _step(name: str, source: tuple[str, ...], to: str, requires: tuple[Requirement, ...]) -> Step:
    variable = module.applied.name if to == Applied.CURRENT else module.run.name
    return Step(BY, name, module.kind.name, (Change(variable, source, to),), requires)


START: Final = _step("start", (ModuleRun.STOPPED, ModuleRun.FAILED), ModuleRun.RUNNING, _UP)
MANIFEST: Final = Manifest(
    BY,
    "1",
    Context.SELF,
    (
        _look(
            "look_run",
            module.run.name,
            (ModuleRun.STOPPED, ModuleRun.RUNNING, ModuleRun.FAILED),
            _UP,
        ),
        _look("look_applied", module.applied.name, (Applied.STALE, Applied.CURRENT), _RUNS),
    ),
    (
        START,
        _step("stop", (ModuleRun.RUNNING, ModuleRun.FAILED), ModuleRun.STOPPED, _UP),
        _step("replace", (ANY,), Applied.CURRENT, _RUNS),
    ),
)
