"""Which minOS a machine runs, by its kernel's command line: what booted it wrote its name there."""

from pathlib import Path
from typing import Final

from haptera.kinds import node
from haptera.kinds.node import Agent
from haptera.sdk import Applied, Module, Target

_COMMAND_LINE: Final = Path("/proc/cmdline")
_NAME: Final = "haptera.minos="


def connect(target: Target) -> Target:
    return target


module = Module("minos", connect=connect, where={node.boot_from: node.NETWORK})
booted = module.serves(node.booted)


@booted.look(every_s=30, outcomes=(Applied.STALE, Applied.CURRENT), requires={node.agent: Agent.UP})
async def look_booted(target: Target) -> str:
    name = minos_of(_COMMAND_LINE.read_text(encoding="utf-8", errors="replace"))
    target.note(name or "one without a name")
    return target.digest if name == target.values.get(node.minos.name) else Applied.STALE


def minos_of(command_line: str) -> str | None:
    """The name of the minOS that was booted with this command line; None for one without a name.

    >>> minos_of("initrd=initramfs haptera.name=n1 haptera.minos=new console=ttyS0")
    'new'
    """
    words = (word for word in command_line.split() if word.startswith(_NAME))
    return next((word.removeprefix(_NAME) for word in words), None)
