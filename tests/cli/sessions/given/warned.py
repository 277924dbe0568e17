"""A module with a warning."""

from haptera.kinds import node
from haptera.kinds.node import Agent, Busy
from haptera.sdk import Module, Target

module = Module("mine", connect=Target)


@module.serves(node.busy).look(outcomes=(Busy.FREE, Busy.BUSY), requires={node.agent: Agent.UP})
async def look(target: Target) -> Busy: ...


@module.serves(node.busy).step((Busy.FREE, Busy.BUSY), Busy.FREE, within_s=5)
async def drain(target: Target) -> None: ...


@module.serves(node.busy).step("*", Busy.BUSY, within_s=5)
async def fill(target: Target) -> None: ...
