"""A module whose look never gives way: its whole process hangs."""

import time

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module, Target


def itself(target: Target) -> Target:
    return target


module = Module("hang", connect=itself)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF,))
async def look(target: Target) -> Power:
    while True:
        time.sleep(1)  # noqa: ASYNC251  on purpose
