"""Serial over LAN of a real IPMI BMC: recorded for as long as its node is looked at."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from haptera.kinds.node import Power
from haptera.model.entity import node_id
from haptera.modules.console import ConsoleError, ConsoleRecord, record_of
from haptera.modules.ipmi.consoles import connect, record_session
from haptera.modules.power import look_power
from haptera.modules.recorders import recording
from haptera.sdk import Setup, Target
from tests.lab.rig import until
from tests.modules.ipmi_rig import (
    HOST,
    SERIAL_PORT,
    Machine,
    bmc_of,
    machine,
    settings_of,
)

WITHIN_S = 60


@pytest.mark.net
@pytest.mark.campaign
def test_what_a_machine_sends_is_recorded_and_nothing_is_typed_there(tmp_path: Path) -> None:
    async def story(one: Machine, serial: socket.socket) -> None:
        file = record_of(tmp_path, "n01")
        async with looked_at(one, tmp_path):
            line, _ = await asyncio.get_running_loop().sock_accept(serial)
            await until(file.exists)
            with line:
                line.sendall(b"it \x1b[1mboots\r\n")
                await until(lambda: b"it \x1b[1mboots\r\n" in file.read_bytes())
                line.setblocking(False)
                assert line.recv(100)[:1] == b"\xff"  # telnet's own negotiation
                with pytest.raises(BlockingIOError):
                    line.recv(100)
        assert file.read_bytes().startswith(b"[haptera records from ")
        # The BMC has one such session, and this would be refused while it is ours.
        async with asyncio.TaskGroup() as tasks:
            again = tmp_path / "again"
            task = tasks.create_task(record_session(bmc_of(one), ConsoleRecord(again)))
            await until(lambda: again.exists() or task.done())
            task.cancel()
        assert again.exists()

    with socket.create_server((HOST, SERIAL_PORT)) as serial, machine(tmp_path) as one:
        serial.setblocking(False)
        asyncio.run(story(one, serial))


@pytest.mark.net
@pytest.mark.campaign
async def test_a_session_that_another_has_is_told_and_left_to_them(tmp_path: Path) -> None:
    with machine(tmp_path) as one:
        async with asyncio.TaskGroup() as tasks:
            theirs = tmp_path / "theirs"
            task = tasks.create_task(record_session(bmc_of(one), ConsoleRecord(theirs)))
            await until(theirs.exists)
            with pytest.raises(ConsoleError, match="already active on another session"):
                await record_session(bmc_of(one), ConsoleRecord(tmp_path / "ours"))
            assert not task.done()
            task.cancel()
        assert not (tmp_path / "ours").exists()


@pytest.mark.net
@pytest.mark.campaign
async def test_no_console_is_recorded_unasked(tmp_path: Path) -> None:
    with machine(tmp_path) as one:
        async with recording(Setup(settings_of(), tmp_path)) as session:
            assert session is None
            assert await look_power(connect(target_of(one, session))) is Power.OFF


@asynccontextmanager
async def looked_at(one: Machine, folder: Path) -> AsyncIterator[None]:
    """The module serves, and has looked at its node."""
    async with recording(Setup(settings_of(record_consoles=True), folder)) as session:
        assert await look_power(connect(target_of(one, session))) is Power.OFF
        yield


def target_of(one: Machine, session: object) -> Target:
    attributes = {"bmc": one.address}
    return Target(node_id("n01"), attributes, settings=settings_of(), session=session)
