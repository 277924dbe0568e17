"""A look at the power that finds it off alone."""

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module, Target

module = Module("mine", connect=Target)


@module.serves(node.power).look(outcomes=(Power.OFF,))
async def look(target: Target) -> Power: ...
