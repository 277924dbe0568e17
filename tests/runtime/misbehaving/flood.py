"""A module that reports, and reports, and reports."""

import os

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module, Target
from haptera.wire.ipc import encode_frame
from tests.runtime.forked import link


def itself(target: Target) -> Target:
    return target


module = Module("flood", connect=itself)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF,))
async def look(target: Target) -> Power:
    os.set_blocking(link(), True)
    sighted = {"op": "sighted", "id": 1, "value": "off", "at_ns": 1}
    many = encode_frame(sighted) * 1000
    while True:
        os.write(link(), many)
