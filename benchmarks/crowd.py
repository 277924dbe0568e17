"""A module for very many machines that are only states in its memory, looked at and watched."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import PARENT, Module, Target

# Machines whose device takes this long to answer, and those that never do.
SLOW_S = 0.02


class Machine:
    """One machine: on as soon as it was switched on, for as long as its file is there."""

    on: ClassVar[set[str]] = set()

    def __init__(self, target: Target) -> None:
        self.name = target.name
        self.file: Path = target.run_dir / f"on-{target.name}"
        self.hangs = target.attributes.get("rack") == "hung"

    async def answer(self) -> None:
        """As long as a device takes; a hung one never ends."""
        await (asyncio.Event().wait() if self.hangs else asyncio.sleep(SLOW_S))


module = Module("crowd", connect=Machine, context=PARENT, at_once=1_000, device=node.bmc)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF, Power.ON), every_s=10, within_s=5)
async def look(machine: Machine) -> Power:
    await machine.answer()
    if machine.name not in machine.on and machine.file.exists():
        machine.on.add(machine.name)
    return Power.ON if machine.name in machine.on else Power.OFF


@power.watch
async def watch(machine: Machine) -> AsyncIterator[Power]:
    await asyncio.Event().wait()
    yield Power.ON


@power.step(Power.OFF, Power.ON, within_s=60, late_s=1)
async def switch_on(machine: Machine) -> None:
    await machine.answer()
    machine.on.add(machine.name)
    machine.file.touch()
    with (machine.file.parent / "steps").open("a") as steps:
        steps.write(f"{machine.name}\n")
