"""A module that behaves, and writes down when each of its steps begins and ends, and in whom.

A step in a process that is to be replaced lasts until the next one is ready.
"""

import asyncio
import os

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import PARENT, Module, Target


def itself(target: Target) -> Target:
    return target


module = Module("stepper", connect=itself, context=PARENT)
power = module.serves(node.power)


@power.look(every_s=1, outcomes=(Power.OFF, Power.ON))
async def look(target: Target) -> Power:
    file = target.run_dir / target.name
    return Power(file.read_text()) if file.exists() else Power.OFF


@power.step(Power.OFF, Power.ON, within_s=60, late_s=0.05)
async def switch_on(target: Target) -> None:
    await switch(target, Power.ON)


@power.step(Power.ON, Power.OFF, within_s=60, late_s=0.05)
async def switch_off(target: Target) -> None:
    await switch(target, Power.OFF)


async def switch(target: Target, to: Power) -> None:
    note(target, "begins")
    while read(target, "ready") < read(target, "desired"):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    (target.run_dir / target.name).write_text(to)
    note(target, "ends")


def read(target: Target, name: str) -> int:
    """What the test has counted in this file."""
    file = target.run_dir / name
    return int(file.read_text()) if file.exists() else 0


def note(target: Target, what: str) -> None:
    line = f"{what} {target.intent} {os.getpid()} {target.settings.get('number')}\n"
    with (target.run_dir / "steps").open("a") as file:
        file.write(line)
