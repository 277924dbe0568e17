"""The labnode module against a real BMC, and against servers that are none."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from haptera.kinds.node import Power
from haptera.model.entity import node_id
from haptera.model.parts import Change, Context, EnrolmentLevel, Look, Manifest, Requirement, Step
from haptera.modules.labnode import look_power, module, switch_off, switch_on, watch_power
from haptera.modules.labnode.bmc import Bmc, BmcError
from haptera.sdk import Boot, HapteraError, Refused, Target
from tests.lab.rig import Rig, chassis

BOOT = Boot("s3cret-token", "-----BEGIN CERTIFICATE-----", "127.7.0.1:4271")
LABNODE = (Requirement("platform", ("labnode",)),)


def test_it_declares_one_look_and_three_steps_at_the_parent() -> None:
    assert module.manifest() == Manifest(
        "labnode",
        "1",
        Context.PARENT,
        looks=(
            Look(
                "labnode",
                "look_power",
                "node",
                "power",
                ("off", "on"),
                LABNODE,
                context=Context.PARENT,
                every_ms=2000,
                within_ms=2000,
                watched=True,
            ),
        ),
        steps=(
            Step(
                "labnode",
                "switch_on",
                "node",
                (
                    Change("power", ("off",), "on"),
                    Change("agent", ("*",), "up", expected=True),
                ),
                LABNODE,
                context=Context.PARENT,
                within_ms=2000,
                late_ms=2000,
                enrols=True,
            ),
            Step(
                "labnode",
                "switch_off",
                "node",
                (Change("power", ("on",), "off"),),
                LABNODE,
                (Requirement("busy", ("busy",)),),
                context=Context.PARENT,
                within_ms=2000,
                late_ms=2000,
                disruptive=True,
            ),
            Step(
                "labnode",
                "force_off",
                "node",
                (Change("power", ("on", "hung"), "off"),),
                LABNODE,
                cost=20,
                context=Context.PARENT,
                within_ms=2000,
                late_ms=2000,
                disruptive=True,
            ),
        ),
        unique=("bmc",),
        enrolment=EnrolmentLevel.OUT_OF_BAND,
    )


@pytest.mark.net
@pytest.mark.slow
def test_it_switches_a_node_on_and_off_by_intents_and_hands_over_the_boot(tmp_path: Path) -> None:
    async def story(node: Rig) -> None:
        bmc = bmc_of(node.address)
        assert await look_power(bmc) == Power.OFF
        readings = watch_power(bmc)
        assert await anext(readings) == Power.OFF
        await switch_on(bmc_of(node.address, intent="i1", boot=BOOT))
        assert await anext(readings) == Power.ON
        assert BOOT.token in (node.run / f"seen-{node.agent}").read_text()
        await switch_off(bmc_of(node.address, intent="i2"))
        assert await anext(readings) == Power.OFF
        assert await look_power(bmc) == Power.OFF
        await readings.aclose()

    with chassis(tmp_path) as node:
        asyncio.run(story(node))
        assert [row["command"] for row in node.record] == ["i1", "i1", "i2", "i2"]


@pytest.mark.net
@pytest.mark.slow
def test_a_refusal_is_told_in_the_words_of_the_bmc(tmp_path: Path) -> None:
    with (
        chassis(tmp_path, refuse="chassis interlock is open") as node,
        pytest.raises(Refused, match=r"^chassis interlock is open$"),
    ):
        asyncio.run(switch_on(bmc_of(node.address, intent="i1", boot=BOOT)))


@pytest.mark.net
@pytest.mark.slow
def test_nothing_is_sent_once_its_time_is_over(tmp_path: Path) -> None:
    with chassis(tmp_path) as node:
        on_time = bmc_of(node.address, intent="i1", boot=BOOT).target
        target = replace(on_time, deadline_ns=5, now=lambda: 2_000_005)
        with pytest.raises(Refused, match="not started: its deadline had passed 2 ms before"):
            asyncio.run(switch_on(Bmc(target)))
        asyncio.run(switch_on(bmc_of(node.address, intent="i2", boot=BOOT)))
    assert [row["command"] for row in node.record if "verdict" in row] == ["i2"]


@pytest.mark.net
@pytest.mark.slow
def test_a_silent_bmc_refuses_nothing(tmp_path: Path) -> None:
    with (
        chassis(tmp_path, silent=True) as node,
        pytest.raises(BmcError, match="does not answer"),
    ):
        asyncio.run(switch_on(bmc_of(node.address, intent="i1", boot=BOOT)))


@pytest.mark.net
@pytest.mark.slow
def test_the_watch_goes_on_when_the_bmc_comes_back(tmp_path: Path) -> None:
    async def story(node: Rig) -> None:
        readings = watch_power(bmc_of(node.address))
        assert await anext(readings) == Power.OFF
        node.kill_bmc()
        assert await anext(readings) == Power.OFF
        await readings.aclose()

    with chassis(tmp_path) as node:
        asyncio.run(story(node))


@pytest.mark.net
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b'HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{"power":"melting"}',
        b"HTTP/1.1 500 Oh\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x" * 20_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + b"[" * 60_000,
    ],
)
async def test_what_is_no_answer_is_an_error_and_no_reading(answer: bytes) -> None:
    async with serving(answer) as address:
        with pytest.raises(BmcError):
            await look_power(bmc_of(address))


@pytest.mark.net
def test_a_port_without_a_bmc_is_told_with_its_address() -> None:
    with pytest.raises(BmcError, match=r"127\.0\.0\.1:1 cannot be reached"):
        asyncio.run(look_power(bmc_of(("127.0.0.1", 1))))


def test_a_node_without_a_bmc_is_told_what_it_lacks() -> None:
    with pytest.raises(HapteraError, match="node:n1: has no attribute bmc"):
        asyncio.run(look_power(Bmc(Target(node_id("n1")))))


def bmc_of(address: tuple[str, int], intent: str | None = None, boot: Boot | None = None) -> Bmc:
    attributes = {"platform": "labnode", "bmc": f"{address[0]}:{address[1]}"}
    return Bmc(Target(node_id("n1"), attributes, intent=intent, boot=boot))


@asynccontextmanager
async def serving(answer: bytes) -> AsyncIterator[tuple[str, int]]:
    """A server that reads a request and says this."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    serve_one: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]] = serve
    server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()
