"""The page on frames shows a conversation; a real host must hold it, byte by byte."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.model.effects import Work
from haptera.sdk import ANY, Boot, EntityId, Measured, Module, Reading, Refused, Target
from haptera.sdk.host import serve
from haptera.wire.ipc import encode_frame

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "frames.md"
WAIT_S = 60
NOW = 7_200_000_000_000


class Line(NamedTuple):
    """One frame of the transcript: who says it, what, and as which bytes."""

    speaker: str
    content: dict[str, Any]
    packed: bytes


def connect(target: Target) -> Target:
    return target


module = Module("lamp", connect=connect)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF, Power.ON))
async def look(target: Target) -> Power:
    return Power.OFF


@power.watch
async def watch(target: Target) -> AsyncIterator[Power]:
    yield Power.ON
    await asyncio.Event().wait()


@power.step(ANY, Power.ON, within_s=60, enrols=True)
async def switch_on(target: Target) -> None:
    assert target.boot == Boot("t0k3n", "-----BEGIN CERTIFICATE-----…", "127.0.0.1")


@power.step(ANY, Power.OFF, within_s=60)
async def switch_off(target: Target) -> None:
    raise Refused("the lamp is locked")


watts = Reading("node", "lamp.watts", unit="W", low=0, high=100)


@module.sampler(watts, every_s=30, many=True)
async def meter(targets: Mapping[EntityId, Target]) -> Mapping[EntityId, Measured]:
    return {one: {watts: 4.5} for one in targets}


@module.hold
async def hold(target: Target) -> None:
    raise Refused("2 jobs run")


@module.release
async def release(target: Target) -> None: ...


def transcript() -> list[Line]:
    """Blocks of `daemon: {...}` or `module: {...}`, each followed by its bytes in hex."""
    (block,) = re.findall(r"```text transcript\n(.*?)```", PAGE.read_text(), re.DOTALL)
    spoken = re.findall(r"(daemon|module): (\{.*\})\n((?:    [0-9a-f ]+\n)+)", block)
    return [
        Line(speaker, json.loads(content), bytes.fromhex("".join(packed.split())))
        for speaker, content, packed in spoken
    ]


def test_the_bytes_on_the_page_are_what_the_page_says() -> None:
    lines = transcript()

    assert [line.packed for line in lines] == [encode_frame(line.content) for line in lines]
    assert {line.content["op"] for line in lines} == {
        *("begin", "call", "cancel", "ping"),
        *("ready", "answered", "ended", "failed", "sighted", "sampled", "pong"),
    }
    works = {line.content["work"] for line in lines if line.content["op"] == "call"}
    assert works == {work.value for work in Work}


async def test_a_host_holds_the_conversation_on_the_page() -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
        tasks.create_task(serve(module, theirs, now=lambda: NOW, wall_s=lambda: 0))
        with ours:
            for line in transcript():
                if line.speaker == "daemon":
                    await loop.sock_sendall(ours, line.packed)
                else:
                    assert await exactly(ours, len(line.packed)) == line.packed


async def exactly(link: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = await asyncio.get_running_loop().sock_recv(link, size - len(data))
        assert more, "the host hung up"
        data += more
    return data


@pytest.mark.parametrize(
    "op", ["call", "cancel", "ping", "ready", "answered", "ended", "failed", "sighted", "pong"]
)
def test_the_page_names_all_keys_of_a_frame(op: str) -> None:
    page = PAGE.read_text()
    keys = {key for line in transcript() if line.content["op"] == op for key in line.content}

    (row,) = re.findall(rf"^\| `{op}` \|(.*)$", page, re.MULTILINE)
    assert [key for key in sorted(keys - {"op"}) if f"`{key}`" not in row] == []
