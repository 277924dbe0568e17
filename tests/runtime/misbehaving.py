"""Modules that misbehave over a look, each in its own way."""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module, Target
from haptera.wire.ipc import FRAME_BYTES_MAX, encode_frame
from tests.runtime.forked import link

SIGHTED = {"op": "sighted", "id": 1, "at_ns": 1}


def wrong(name: str, does: Callable[[], Awaitable[None]]) -> Module[Target]:
    """A module whose look does this; where that comes to an end, power is off."""
    module: Module[Target] = Module(name, connect=lambda target: target)

    @module.serves(node.power).look(outcomes=(Power.OFF,))
    async def look(_: Target) -> Power:
        await does()
        return Power.OFF

    return module


async def never_give_way() -> None:
    while True:
        time.sleep(1)  # noqa: ASYNC251  on purpose


async def die() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


async def report_and_report() -> None:
    os.set_blocking(link(), True)
    many = encode_frame(SIGHTED | {"value": "off"}) * 1000
    while True:
        os.write(link(), many)


async def report_at_length() -> None:
    os.set_blocking(link(), True)
    frame = encode_frame(SIGHTED | {"value": "x" * (FRAME_BYTES_MAX - 100)})
    while True:
        rest = frame
        while rest:
            rest = rest[os.write(link(), rest) :]


async def announce_a_gigabyte() -> None:
    os.write(link(), (1 << 30).to_bytes(4, "big") + b"x" * 1000)


async def mean_nothing() -> None:
    os.write(link(), encode_frame({"op": "reboot", "id": 1}))


async def answer_calls_of_others() -> None:
    for call in range(90, 120):
        forged = {"op": "answered", "id": call, "value": "off", "at_ns": 1}
        os.write(link(), encode_frame(forged))


async def want_more_memory_than_there_is() -> None:
    bytearray(1 << 40)


async def print_without_end() -> None:
    line = "blah " * 200
    while True:
        print(line)  # noqa: T201  on purpose
        await asyncio.sleep(0)


hang = wrong("hang", never_give_way)
crash = wrong("crash", die)
flood = wrong("flood", report_and_report)
flood_of_bytes = wrong("flood_of_bytes", report_at_length)
gigabyte = wrong("gigabyte", announce_a_gigabyte)
nonsense = wrong("nonsense", mean_nothing)
thief = wrong("thief", answer_calls_of_others)
hog = wrong("hog", want_more_memory_than_there_is)
chatter = wrong("chatter", print_without_end)
# It declares the parts of another.
impostor: Module[Target] = Module("somebody", connect=lambda target: target)
