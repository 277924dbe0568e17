"""Modules of power, one honest and the others wrong in a way of their own; each node has a file.

The file of a switch holds a line for each command it was sent; that, not the module, is what the
commands are counted by. A switch that was sent `on` is on.
"""

import asyncio
import gc
import os
import signal
import time
from pathlib import Path
from typing import Any

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.runtime import clock
from haptera.sdk import PARENT, Module, Policy, Target
from haptera.sdk.host import _Host
from haptera.wire.ipc import encode_frame

ATTEMPTS, COOL_DOWN_MS = 3, 600_000
HASTY = Policy(ATTEMPTS, backoff_ms=100, backoff_ms_max=200, cool_down_ms=COOL_DOWN_MS)
WITHIN_S = 1
# For what does as it should, on a busy machine too.
PATIENT_S = 20
# Any call that anybody else in the same daemon may have been sent in a test.
CALLS, MEDDLES = range(1, 200), 8


class Switch:
    """The switch of one node, kept in a file."""

    def __init__(self, target: Target) -> None:
        self.intent = target.intent
        self.file = target.run_dir / "switches" / f"{target.name}.commands"

    def read(self) -> Power:
        return Power.ON if self.file.exists() and self.file.read_text() else Power.OFF

    def command(self) -> None:
        """Take effect."""
        self._note("on")

    def ask(self) -> None:
        """Note that it was called, and take no effect."""
        self._note("", ".asked")

    def _note(self, what: str, suffix: str = "") -> None:
        self.file.parent.mkdir(exist_ok=True)
        with Path(f"{self.file}{suffix}").open("a") as out:
            out.write(f"{self.intent} {what}\n")


def module_of(way: str) -> tuple[Module[Switch], Any]:
    module = Module(way, connect=Switch, where={node.platform: way}, context=PARENT)
    return module, module.serves(node.power)


def wrong_step(
    way: str,
    does: Any,
    within_s: float = PATIENT_S,
    look_within_s: float = PATIENT_S,
    look_every_s: float = 1,
) -> Module[Switch]:
    """A module whose looks are honest, and whose step does this instead of switching."""
    module, power = module_of(way)

    @power.look(
        every_s=look_every_s, within_s=look_within_s, outcomes=(Power.OFF, Power.ON), policy=HASTY
    )
    async def look_power(switch: Switch) -> Power:
        return switch.read()

    @power.step(Power.OFF, Power.ON, within_s=within_s, policy=HASTY)
    async def switch_on(switch: Switch) -> None:
        switch.ask()
        await does(switch)

    return module


def wrong_look(way: str, does: Any, within_s: float = PATIENT_S) -> Module[Switch]:
    """A module whose step is honest, and whose look does this before it tells the truth."""
    module, power = module_of(way)

    @power.look(every_s=1, within_s=within_s, outcomes=(Power.OFF, Power.ON), policy=HASTY)
    async def look_power(switch: Switch) -> Any:
        return await does(switch) or switch.read()

    @power.step(Power.OFF, Power.ON, within_s=PATIENT_S, policy=HASTY)
    async def switch_on(switch: Switch) -> None:
        switch.ask()
        switch.command()

    return module


def host() -> _Host:
    """What speaks for this module, which an honest module never sees."""
    return next(one for one in gc.get_objects() if isinstance(one, _Host))


def link_of(one: _Host) -> int:
    link: int = one._writer.get_extra_info("socket").fileno()
    os.set_blocking(link, True)
    return link


def own_call() -> int:
    """The number of the call that is being served: that of this very task."""
    return next(call for call, task in host()._calls.items() if task is asyncio.current_task())


def say(*frames: dict[str, Any], times: int = 1) -> None:
    """Speak on the module's own link, past its host."""
    link = link_of(host())
    for _ in range(times):
        os.write(link, b"".join(encode_frame(frame) for frame in frames))


def answer(call: int, value: str) -> dict[str, Any]:
    return {"op": "answered", "id": call, "value": value, "at_ns": clock.now_ns()}


async def switch_it(switch: Switch) -> None:
    switch.command()


async def raise_it(_: Switch) -> None:
    raise RuntimeError("on fire")


async def hang(_: Switch) -> None:
    await asyncio.Event().wait()


async def block(_: Switch) -> None:
    time.sleep(10_000)  # noqa: ASYNC251 - on purpose


async def leave(_: Switch) -> None:
    os._exit(7)


async def die(_: Switch) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def rave(_: Switch) -> None:
    os.write(link_of(host()), b"\xff" * 64)


async def melt(_: Switch) -> str:
    return "melting"


async def melt_rudely(_: Switch) -> None:
    say(answer(own_call(), "melting"))


async def repeat(switch: Switch) -> None:
    other = "off" if switch.read() == "on" else "on"
    say(answer(own_call(), switch.read()), answer(own_call(), other))


async def meddle(switch: Switch) -> None:
    """Answer in the name of all others, for as long as a step may take."""
    frames = [{"op": "failed", "id": call, "text": "meddled", "refused": True} for call in CALLS]
    for _ in range(MEDDLES):
        say(*(one for one in frames if one["id"] != own_call()))
        await asyncio.sleep(WITHIN_S / MEDDLES / 2)
    raise RuntimeError("meddled without success")


async def flood(_: Switch) -> None:
    say({"op": "sighted", "id": own_call(), "value": "on", "at_ns": 1}, times=1_000_000)


async def send_a_gigabyte(switch: Switch) -> None:
    link = link_of(host())
    os.write(link, (1 << 30).to_bytes(4, "big"))
    for _ in range(1 << 10):
        os.write(link, b"x" * (1 << 20))


async def leak(_: Switch) -> None:
    while True:
        os.open(os.devnull, os.O_RDONLY)


honest = wrong_step("honest", switch_it)
raises = wrong_step("raises", raise_it)
hangs = wrong_step("hangs", hang, WITHIN_S)
blocks = wrong_step("blocks", block, WITHIN_S, WITHIN_S)
exits = wrong_step("exits", leave)
killed = wrong_step("killed", die)
rubbish = wrong_step("rubbish", rave)
raises_looking = wrong_look("raises_looking", raise_it)
hangs_looking = wrong_look("hangs_looking", hang, WITHIN_S)
melts = wrong_look("melts", melt)
melts_rudely = wrong_look("melts_rudely", melt_rudely)
repeats = wrong_look("repeats", repeat)
# Looked at while it answers for all others, it would answer for itself, too.
meddles = wrong_step("meddles", meddle, look_every_s=600)
floods = wrong_step("floods", flood)
gigabyte = wrong_step("gigabyte", send_a_gigabyte)
leaks = wrong_step("leaks", leak)

WAYS = tuple(name for name, one in [*globals().items()] if isinstance(one, Module))
