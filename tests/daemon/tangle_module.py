"""A module that serves the tangle: what it looks at is as it was drawn, and nothing changes it."""

from random import Random
from typing import Any, Final

from haptera.model.declared.schema import Variable
from haptera.model.parts import Context, Requirement, Step
from haptera.sdk import Module, Refused, Target
from tests.planner.shapes import drawn
from tests.planner.tangle import KIND, TANGLE

# A start and a goal between which a search takes seconds, and gives up.
_random = Random(1)
START: Final = drawn(TANGLE, _random)
GOAL: Final = drawn(TANGLE, _random)

_VARIABLES: Final = {one.name: one for one in KIND.variables}


def connect(target: Target) -> Target:
    return target


module = Module("m", connect=connect, context=Context.PARENT)


def _serve(variable: Variable[Any]) -> None:
    served = module.serves(variable)

    async def look(_: Target) -> Any:
        return variable.values(START[variable.name])

    look.__name__ = f"look_{variable.name}"
    served.look(outcomes=tuple(variable.values)[1:])(look)
    for step in TANGLE.steps:
        (change,) = step.changes
        if change.variable == variable.name:
            _declare(step, served.goes(change.sources, variable.values(change.target)))


def _declare(step: Step, going: Any) -> None:
    async def refuse(_: Target) -> None:
        raise Refused("it is all entangled")

    refuse.__name__ = step.name
    module.step(
        going,
        within_s=step.within_ms / 1_000,
        requires=_conditions(step.requires),
        excludes=_conditions(step.excludes),
        cost=step.cost,
    )(refuse)


def _conditions(conditions: tuple[Requirement, ...]) -> dict[Any, tuple[str, ...]]:
    return {_VARIABLES[one.name]: one.values for one in conditions}


for one in KIND.variables:
    _serve(one)
