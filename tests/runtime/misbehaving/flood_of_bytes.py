"""A module whose reports are as long as frames may be."""

import os

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module, Target
from haptera.wire.ipc import FRAME_BYTES_MAX, encode_frame
from tests.runtime.forked import link


def itself(target: Target) -> Target:
    return target


module = Module("flood_of_bytes", connect=itself)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF,))
async def look(target: Target) -> Power:
    os.set_blocking(link(), True)
    text = "x" * (FRAME_BYTES_MAX - 100)
    frame = encode_frame({"op": "sighted", "id": 1, "value": text, "at_ns": 1})
    while True:
        rest = frame
        while rest:
            rest = rest[os.write(link(), rest) :]
