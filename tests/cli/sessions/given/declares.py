"""A module that says which settings it reads."""

from dataclasses import dataclass

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module


@dataclass
class Settings:
    """Its settings."""

    pause_s: float


class Strip:
    def __init__(self, target):
        self.pause_s = target.settings["pause_s"]


module = Module("strip", connect=Strip, settings=Settings)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF, Power.ON))
async def look(strip):
    return Power.ON
