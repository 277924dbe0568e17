"""A module's own sessions, its plain functions in threads, and what one that hangs harms."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import Module, Refused, Setup, Target
from haptera.sdk.host import HANGING_MAX, serve
from haptera.sdk.threads import Threads
from tests.sdk.test_host import Daemon, Device, a_call, failed

NOW = 1_000_000_000


class Library:
    """One that blocks whoever calls it, until it is let go."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.log: list[str] = []


def module_on(library: Library, **terms: Any) -> Module[Target]:
    @asynccontextmanager
    async def lifespan(setup: Setup) -> AsyncIterator[str]:
        library.log.append(f"open {setup.settings['pause_s']} {setup.run_dir}")
        try:
            yield "session"
        finally:
            library.log.append("close")

    module = Module("trial", connect=lambda target: target, lifespan=lifespan, **terms)
    power = module.serves(node.power)

    @power.look(outcomes=(Power.OFF, Power.ON))
    def look(target: Target) -> Power:
        library.log.append(f"look {target.name} {target.session}")
        if target.attributes.get("bug"):
            raise KeyError("stat")
        if target.attributes.get("hung"):
            library.go.wait()
        main = threading.current_thread() is threading.main_thread()
        target.note("loop" if main else "thread")
        return Power.ON

    @power.step(Power.ON, Power.OFF, within_s=1)
    def switch_off(target: Target) -> None:
        raise Refused("the key is turned")

    return module


@asynccontextmanager
async def spoken(begin: dict[str, Any], **terms: Any) -> AsyncIterator[tuple[Daemon, Library]]:
    """A daemon that speaks to a host, and what the module does there."""
    library = Library()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(
            serve(module_on(library, **terms), theirs, now=lambda: NOW, wall_s=lambda: 0)
        )
        daemon = Daemon(ours, Device())
        await daemon.send({"op": "begin", "module": "trial", "run_dir": "/run/x", **begin})
        assert (await daemon.next())["op"] == "ready"
        try:
            yield daemon, library
        finally:
            ours.close()
            library.go.set()


async def hang(daemon: Daemon, call: dict[str, Any]) -> None:
    """Make a call that has begun for sure, and give it up."""
    await daemon.send(call)
    for _ in range(2):
        await daemon.send({"op": "ping"})
        assert await daemon.next() == {"op": "pong"}
    await daemon.send({"op": "cancel", "id": call["id"]})


async def test_a_lifespan_is_open_from_before_the_first_call_until_the_end() -> None:
    async with spoken({"settings": {"pause_s": 2}}) as (daemon, library):
        await daemon.send(a_call(1, "look", "look"))
        assert (await daemon.next())["note"] == "thread"

    assert library.log == ["open 2 /run/x", "look n01 session", "close"]


async def test_who_is_only_asked_what_it_declares_opens_nothing() -> None:
    async with spoken({"settings": {}, "describe": True}) as (daemon, library):
        await daemon.send({"op": "ping"})
        assert await daemon.next() == {"op": "pong"}
    assert library.log == []


async def test_what_a_plain_function_raises_is_told_as_of_any_other() -> None:
    async with spoken({"settings": {"pause_s": 2}}) as (daemon, _):
        await daemon.send(a_call(1, "step", "switch_off"))
        assert await daemon.next() == failed(1, "the key is turned", refused=True)


async def test_a_bug_is_told_with_its_type_and_its_traceback_printed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async with spoken({"settings": {"pause_s": 2}}) as (daemon, _):
        await daemon.send(a_call(1, "look", "look", attributes={"bug": "1"}))
        assert await daemon.next() == failed(1, "KeyError: 'stat'", refused=False)

    printed = capfd.readouterr().err
    assert "in look" in printed
    assert printed.endswith("KeyError: 'stat'\n")


async def test_a_device_that_hangs_a_plain_function_harms_itself_only() -> None:
    hung = {"kind": "node", "name": "n66", "node": "n66"}

    async with spoken({"settings": {"pause_s": 2}}) as (daemon, _):
        await hang(daemon, a_call(1, "look", "look", entity=hung, attributes={"hung": "1"}))
        await daemon.send(a_call(2, "look", "look"))
        assert ((await daemon.next())["id"], "others are served") == (2, "others are served")
        await daemon.send(a_call(3, "look", "look", entity=hung))
        text = "an earlier call was given up, but still runs and cannot be ended"
        assert await daemon.next() == failed(3, text, refused=True)


async def test_plain_functions_of_one_entity_run_beside_each_other() -> None:
    async with spoken({"settings": {"pause_s": 2}}) as (daemon, _):
        await daemon.send(a_call(1, "look", "look", attributes={"hung": "1"}))
        await daemon.send(a_call(2, "look", "look"))
        assert (await daemon.next())["id"] == 2
        await daemon.send(a_call(3, "look", "look", attributes={"hung": "1"}))
        await daemon.send({"op": "cancel", "id": 1}, {"op": "cancel", "id": 3})
        await daemon.send(a_call(4, "look", "look"))
        text = "an earlier call was given up, but still runs and cannot be ended"
        assert await daemon.next() == failed(4, text, refused=True)


async def test_more_threads_may_hang_than_the_module_takes_at_once_up_to_a_maximum() -> None:
    hang_max = HANGING_MAX + 2

    async with spoken({"settings": {"pause_s": 20}}, at_once=2) as (daemon, _):
        for number in range(hang_max):
            entity = {"kind": "node", "name": f"n{number}", "node": f"n{number}"}
            attributes = {"hung": "1"}
            await hang(daemon, a_call(number, "look", "look", entity=entity, attributes=attributes))
        await daemon.send(a_call(999, "look", "look"))
        text = f"{hang_max} calls run in threads already, the maximum"
        assert await daemon.next() == failed(999, text, refused=True)


async def test_a_thread_that_has_ended_gives_its_place_to_the_next():
    threads, begun = Threads(threads_max=1), []
    for number in range(3):
        with contextlib.suppress(Refused):
            begun.append(await threads.run("n1", lambda number=number: number))
    assert begun == [0, 1, 2]
