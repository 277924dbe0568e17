"""A module that answers calls that others were given."""

import os

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module, Target
from haptera.wire.ipc import encode_frame
from tests.runtime.forked import link


def itself(target: Target) -> Target:
    return target


module = Module("thief", connect=itself)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF,))
async def look(target: Target) -> Power:
    for call in range(90, 120):
        forged = {"op": "answered", "id": call, "value": "off", "at_ns": 1}
        os.write(link(), encode_frame(forged))
    return Power.OFF
