"""A module with an error."""

from haptera.kinds import node
from haptera.kinds.node import Busy
from haptera.sdk import Module, Target

module = Module("mine", connect=Target)


@module.serves(node.busy).step((Busy.FREE, Busy.BUSY), Busy.FREE, within_s=5)
async def drain(target: Target) -> None: ...
