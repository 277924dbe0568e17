"""A module that prints without end, and gives way now and then."""

import asyncio

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module, Target


def itself(target: Target) -> Target:
    return target


module = Module("chatter", connect=itself)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF,))
async def look(target: Target) -> Power:
    line = "blah " * 200
    while True:
        print(line)  # noqa: T201  on purpose
        await asyncio.sleep(0)
