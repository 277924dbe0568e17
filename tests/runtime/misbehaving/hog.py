"""A module that takes more memory than there is."""

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module, Target


def itself(target: Target) -> Target:
    return target


module = Module("hog", connect=itself)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF,))
async def look(target: Target) -> Power:
    return Power(str(len(bytearray(1 << 40))))
