"""A module that announces a frame of a gigabyte, and begins to send it."""

import os

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module, Target
from tests.runtime.forked import link


def itself(target: Target) -> Target:
    return target


module = Module("gigabyte", connect=itself)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF,))
async def look(target: Target) -> Power:
    os.write(link(), (1 << 30).to_bytes(4, "big") + b"x" * 1000)
    return Power.OFF
