"""Machines in a shelf, switched by the shelf's one controller, by a library that blocks.

A process of this module has one session with the controller, for as long as it lives; two would
disturb each other, so the old process ends before a new one starts. The library blocks, so its
functions are plain ones: each runs in a thread, and one machine that hangs harms itself only.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import PARENT, Module, Setup, Target


class Session:
    """What the library offers: it waits for the controller, which takes one command at a time."""

    def __init__(self, log: Path, say: Callable[[str], None] | None = None) -> None:
        self._log = log
        self._say = say or self._write
        self._say("login")

    def power(self, slot: str) -> Power:
        """How the log of the controller tells that a slot was switched last."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        last = [line for line in lines if line.startswith(f"{slot} ")]
        return Power(last[-1].split()[1]) if last else Power.OFF

    def switch(self, slot: str, to: Power) -> None:
        self._say(f"{slot} {to}")

    def close(self) -> None:
        self._say("logout")

    def _write(self, line: str) -> None:
        with self._log.open("a") as log:
            log.write(f"{line}\n")


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine, in its slot."""

    session: Session
    slot: str


@asynccontextmanager
async def lifespan(setup: Setup) -> AsyncIterator[Session]:
    """Log in when the process starts, and out when it ends."""
    session = Session(setup.run_dir / "commands")
    try:
        yield session
    finally:
        session.close()


def connect(target: Target) -> Machine:
    return Machine(target.session, target.attributes["bmc"])


module = Module(
    "shelf",
    connect=connect,
    context=PARENT,
    lifespan=lifespan,
    exclusive=True,
    device=node.rack,
    per_device=4,
)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF, Power.ON), every_s=5)
def look(machine: Machine) -> Power:
    return machine.session.power(machine.slot)


@power.step(Power.OFF, Power.ON, within_s=10, late_s=1)
def switch_on(machine: Machine) -> None:
    machine.session.switch(machine.slot, Power.ON)


@power.step(Power.ON, Power.OFF, within_s=10, late_s=1, disruptive=True)
def switch_off(machine: Machine) -> None:
    machine.session.switch(machine.slot, Power.OFF)
