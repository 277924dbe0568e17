"""A module that reads settings, and does not say which."""

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module


class Strip:
    def __init__(self, target):
        self.pause_s = target.settings["pause_s"]


module = Module("strip", connect=Strip)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF, Power.ON))
async def look(strip):
    return Power.ON
