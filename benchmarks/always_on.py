"""A module of machines that are on and should stay so: each that is switched is written down."""

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import PARENT, Module, Target


class Machine:
    def __init__(self, target: Target) -> None:
        self.name = target.name
        self.steps = target.run_dir / "steps"

    def note(self, what: str) -> None:
        with self.steps.open("a") as steps:
            steps.write(f"{what} {self.name}\n")


module = Module("always_on", connect=Machine, context=PARENT, at_once=1_000, device=node.bmc)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF, Power.ON), every_s=3600, within_s=5)
async def look(_: Machine) -> Power:
    return Power.ON


@power.step(Power.OFF, Power.ON, within_s=60, late_s=1)
async def switch_on(machine: Machine) -> None:
    machine.note("on")


@power.step(Power.ON, Power.OFF, within_s=60, late_s=1)
async def switch_off(machine: Machine) -> None:
    machine.note("off")
