"""A module that crashes over a look, its last words being none."""

import os
import signal

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module, Target


def itself(target: Target) -> Target:
    return target


module = Module("crash", connect=itself)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF,))
async def look(target: Target) -> Power:
    os.kill(os.getpid(), signal.SIGSEGV)
    return Power.OFF
