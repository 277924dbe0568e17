"""Blades in a chassis whose manager answers for all of them at once, and powers up in stages.

One request tells of every blade, so the look is of many: blades that are due close together cost
one request. It says how old what the manager knows is. Switching off is of many, too. Switching
on takes long: the step tells how far it is, and goes no further where something else is desired
meanwhile.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.model.entity import EntityId
from haptera.sdk import PARENT, HapteraError, Module, Refused, Target

STAGES: Final = ("standby power", "fans", "memory training", "processors")
STAGE_S: Final = 0.3


class Manager:
    """The chassis' manager: here a folder with a file for each slot, and a log of its requests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def powers(self) -> dict[str, Power]:
        """One request: which slots are on; a slot without a blade is not among them."""
        self._say("powers")
        return {one.name: Power(one.read_text()) for one in self._folder.glob("slot-*")}

    def age_s(self) -> float:
        """How long ago it asked its blades what it tells of them."""
        age = self._folder / "age"
        return float(age.read_text()) if age.exists() else 0

    def switch(self, slots: list[str], to: Power) -> None:
        """One request for all these slots."""
        self._say(f"{to} {' '.join(sorted(slots))}")
        for slot in slots:
            (self._folder / slot).write_text(to)

    def advance(self, slot: str, stage: str) -> None:
        self._say(f"{slot}: {stage}")

    def _say(self, line: str) -> None:
        with (self._folder / "requests").open("a") as log:
            log.write(f"{line}\n")


@dataclass(frozen=True, slots=True)
class Blade:
    """One blade: its slot, the manager, and what it is asked for."""

    manager: Manager
    slot: str
    target: Target


def connect(target: Target) -> Blade:
    return Blade(Manager(target.run_dir), target.attributes["bmc"], target)


module = Module("chassis", connect=connect, context=PARENT, at_once=1_000)
power = module.serves(node.power)


@power.look(many=True, outcomes=(Power.OFF, Power.ON), every_s=5)
def look(blades: Mapping[EntityId, Blade]) -> Mapping[EntityId, Power | Exception]:
    manager = next(iter(blades.values())).manager
    powers, age_s = manager.powers(), manager.age_s()
    for blade in blades.values():
        blade.target.age(age_s)
    none = HapteraError("the slot is empty")
    return {entity: powers.get(blade.slot, none) for entity, blade in blades.items()}


@power.step(Power.ON, Power.OFF, many=True, within_s=10, late_s=1, disruptive=True)
def switch_off(blades: Mapping[EntityId, Blade]) -> None:
    manager = next(iter(blades.values())).manager
    manager.switch([blade.slot for blade in blades.values()], Power.OFF)


@power.step(Power.OFF, Power.ON, within_s=60, late_s=1, stoppable=True)
async def switch_on(blade: Blade) -> None:
    for done, stage in enumerate(STAGES):
        if blade.target.unwanted:
            raise Refused(f"stopped before {stage}")
        blade.target.progress(stage, done / len(STAGES))
        blade.manager.advance(blade.slot, stage)
        await asyncio.sleep(STAGE_S)
    blade.manager.switch([blade.slot], Power.ON)
