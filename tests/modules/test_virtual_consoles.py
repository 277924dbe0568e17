"""Consoles of virtual machines: what they send is recorded, and people read it."""

import asyncio
import os
import re
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from haptera.kinds.node import Power
from haptera.model.entity import node_id
from haptera.modules import libvirt, qemu
from haptera.modules.console import ConsoleError, ConsoleRecord, record_of
from haptera.modules.libvirt import domain
from haptera.modules.power import force_off, look_power, switch_on
from haptera.modules.qemu import machine
from haptera.modules.recorders import recording
from haptera.modules.terminal import record_terminal
from haptera.sdk import Setup, Target
from haptera.sdk.commands import Program
from tests.cli.rig import client_of, served, typed
from tests.lab.rig import wait_for
from tests.modules.virtual_rig import (
    QEMU,
    SAYS_IT_AGAIN,
    SERIAL_CONSOLE,
    computer,
    libvirtd,
    program,
)

WITHIN_S = 60
BEGUN = b"it begins\r\n"


def sent_of(file: Path) -> bytes:
    """What was recorded, without the lines by which sessions begin."""
    recorded = file.read_bytes() if file.exists() else b""
    return re.sub(rb"\[haptera records from [^\n]*\n", b"", recorded)


def starts_of(file: Path) -> int:
    """How many sessions have begun, and were sent something."""
    recorded = file.read_bytes() if file.exists() else b""
    return len(re.findall(rb"\[haptera records from [^\n]*\nD", recorded))


def opened(words: bytes) -> bytes | None:
    """Those of a program that begins with a line."""
    return words.partition(BEGUN)[2] if BEGUN in words else None


@pytest.mark.net
def test_a_line_of_a_machine_is_recorded_to_its_end_and_nothing_is_typed(tmp_path: Path) -> None:
    file = record_of(tmp_path, "n01")
    typed_there = b""

    async def story() -> None:
        async def boots(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal typed_there
            writer.write(b"it \x1b[1mboots\r\n")
            writer.write_eof()
            typed_there = await reader.read()
            writer.close()

        settings = qemu.module.settings({"arguments": [], "record_consoles": True})
        one = machine.QemuMachine(Target(node_id("n01"), settings=settings, run_dir=tmp_path))
        with pytest.raises(ConsoleError, match="no machine runs that was started with it"):
            await one.record_session(ConsoleRecord(file))
        async with await asyncio.start_unix_server(boots, one.console):
            await one.record_session(ConsoleRecord(file))

    asyncio.run(asyncio.wait_for(story(), WITHIN_S))
    assert file.read_bytes().startswith(b"[haptera records from ")
    assert (sent_of(file), typed_there) == (b"it \x1b[1mboots\r\n", b"")


@pytest.mark.net
def test_a_programs_terminal_is_recorded_from_the_line_by_which_it_begins(tmp_path: Path) -> None:
    file = record_of(tmp_path, "n01")
    # A console wants a terminal.
    script = "test -t 0 && echo hello && printf 'it begins\\r\\n' && printf 'boots\\r\\n'"
    asyncio.run(record_terminal(Program(["sh", "-c", script]), opened, ConsoleRecord(file)))
    assert sent_of(file) == b"boots\r\n"


@pytest.mark.net
@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo 'error: the domain   is off' >&2", "error: the domain is off"),
        ("true", "no words"),
        ("yes", "y y y"),
        ("printf 'it begins'", "it begins"),
    ],
)
def test_a_program_that_does_not_begin_is_told_in_its_words(
    tmp_path: Path, script: str, told: str
) -> None:
    file = record_of(tmp_path, "n01")
    with pytest.raises(ConsoleError, match=told):
        asyncio.run(record_terminal(Program(["sh", "-c", script]), opened, ConsoleRecord(file)))
    assert not file.exists()


@pytest.mark.net
@pytest.mark.campaign
def test_each_start_of_a_qemu_is_recorded(tmp_path: Path) -> None:
    with computer(tmp_path) as one:
        (tmp_path / "disk").write_bytes(program("D", SAYS_IT_AGAIN))
        settings = one.settings(record_consoles=True)
        file = record_of(tmp_path, "n01")

        async def story() -> None:
            async with recording(Setup(settings, tmp_path)) as session:
                target = Target(
                    node_id("n01"),
                    {"memory_mb": "16"},
                    settings=settings,
                    session=session,
                    run_dir=tmp_path,
                )
                bmc = machine.connect(target)
                assert await look_power(bmc) is Power.OFF
                for times in (1, 2):
                    await switch_on(bmc)
                    await asyncio.to_thread(wait_for, lambda so=times: starts_of(file) == so)
                    await force_off(bmc)

        asyncio.run(story())


@pytest.mark.net
@pytest.mark.campaign
def test_what_a_domain_says_at_its_console_is_recorded() -> None:
    again = program("D", SAYS_IT_AGAIN)
    with libvirtd(again, SERIAL_CONSOLE) as one, tempfile.TemporaryDirectory() as folder:
        settings = libvirt.module.settings({"uri": one.uri, "record_consoles": True})
        file = record_of(Path(folder), "n01")

        async def story() -> None:
            async with recording(Setup(settings, Path(folder))) as session:
                bmc = domain.connect(Target(node_id("n01"), settings=settings, session=session))
                with pytest.raises(ConsoleError, match="domain is not running"):
                    await bmc.record_session(ConsoleRecord(file))
                await switch_on(bmc)
                await asyncio.to_thread(wait_for, lambda: b"DDD" in sent_of(file))
                # It has one reader, and that is not put out.
                with pytest.raises(ConsoleError, match="Active console session exists"):
                    await bmc.record_session(ConsoleRecord(Path(folder) / "another"))
                await force_off(bmc)
                assert await look_power(bmc) is Power.OFF

        asyncio.run(story())


SITE = """\
cluster: vms
modules:
  qemu:
    settings:
      arguments: [-machine, pc, -accel, tcg, -m, "16", -nodefaults,
        -drive, "file={folder}/disk,format=raw,if=ide,snapshot=on", -boot, order=c]
      record_consoles: true
nodes:
  n01: {{platform: qemu, jobs: none, has_agent: never}}
desired:
  n01: {{power: on}}
"""


@pytest.mark.net
@pytest.mark.campaign
def test_people_read_a_machines_console_and_see_its_end_where_it_hangs() -> None:
    if shutil.which(QEMU) is None:
        pytest.skip(f"{QEMU} is missing: apt install qemu-system-x86")
    # The path of a socket is short.
    with tempfile.TemporaryDirectory(prefix="vm", dir="/tmp") as folder:
        home = Path(folder)
        home.chmod(0o755)  # The machine runs as its module's user.
        (home / "disk").write_bytes(program("D", SAYS_IT_AGAIN))
        (home / "site.yaml").write_text(SITE.format(folder=folder))
        pid_file = home / ".haptera" / "modules" / "qemu" / "n01.pid"

        def says(*words: str) -> str:
            return typed(*words, folder=home, client=client_of(home))[1]

        try:
            with served(home, "--site", str(home / "site.yaml")):
                wait_for(lambda: "\nDDD" in says("console", "n01"))
                # In sync, it shows nothing of it.
                wait_for(lambda: "console" not in says("why", "node:n01"))
                os.kill(int(pid_file.read_text()), signal.SIGSTOP)
                wait_for(lambda: "  console  DDD" in says("why", "node:n01"))
        finally:
            with suppress(FileNotFoundError, ProcessLookupError):
                os.kill(int(pid_file.read_text()), signal.SIGKILL)
