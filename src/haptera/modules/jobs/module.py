"""The gate of a node's jobs as a module: whether the node is busy, and its word that it is not."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from haptera.keeping.gate import JobsGate
from haptera.kinds import node
from haptera.kinds.node import Agent, Busy
from haptera.sdk import SELF, Module, Target

WATCH_EVERY_S: Final = 0.5


def connect(target: Target) -> JobsGate:
    return JobsGate(target.run_dir)


module = Module("jobs", connect=connect, context=SELF)
busy = module.serves(node.busy)


@busy.look(every_s=10, outcomes=(Busy.FREE, Busy.BUSY), requires={node.agent: Agent.UP})
async def look_busy(gate: JobsGate) -> Busy:
    return Busy.BUSY if gate.in_use else Busy.FREE


@busy.watch
async def watch_busy(gate: JobsGate) -> AsyncIterator[Busy]:
    told: Busy | None = None
    while True:
        seen = await look_busy(gate)
        if seen is not told:
            told = seen
            yield seen
        await asyncio.sleep(WATCH_EVERY_S)


@module.hold
async def hold(gate: JobsGate) -> None:
    gate.hold()


@module.release
async def release(gate: JobsGate) -> None:
    gate.release()
