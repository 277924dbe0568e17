"""A module that sends sound frames which mean nothing."""

import os

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module, Target
from haptera.wire.ipc import encode_frame
from tests.runtime.forked import link


def itself(target: Target) -> Target:
    return target


module = Module("nonsense", connect=itself)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF,))
async def look(target: Target) -> Power:
    os.write(link(), encode_frame({"op": "reboot", "id": 1}))
    return Power.OFF
