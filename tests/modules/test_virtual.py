"""What the modules of virtual machines do to real ones: a QEMU, and a domain of a libvirtd."""

import asyncio
import json
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
from haptera.modules.libvirt.domain import TOOL, LibvirtDomain, LibvirtError, network_first
from haptera.modules.power import boot, force_off, look_power, switch_off, switch_on
from haptera.modules.qemu.machine import QemuMachine
from haptera.modules.qemu.monitor import MonitorError, command
from haptera.sdk import HapteraError, Refused, Target
from tests.cli.rig import client_of, served, typed
from tests.lab.rig import wait_for
from tests.modules.ipmi_rig import overheard
from tests.modules.virtual_rig import QEMU, STARTS_AGAIN, computer, libvirtd, program, until_said

real = pytest.mark.campaign


def machine(*arguments: str, program: str = "true", **attributes: str) -> QemuMachine:
    settings = qemu.module.settings({"arguments": list(arguments), "program": program})
    return QemuMachine(Target(node_id("n01"), attributes, settings=settings))


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ({}, "has no attribute mac"),
        ({"mac": "52:54:00:00:00:01,romfile=/etc/shadow"}, "attribute mac is '52:54"),
        ({"mac": ""}, "attribute mac is ''"),
    ],
)
def test_an_attribute_is_one_value_to_qemu_or_nothing(
    attributes: dict[str, str], told: str
) -> None:
    with pytest.raises(HapteraError, match=told):
        asyncio.run(machine("-device", "e1000,mac={mac}", **attributes).power_on())


@pytest.mark.parametrize(
    ("word", "value"),
    [("file=/vm/{disk}", "../../etc/shadow"), ("file=/vm/{disk}", ".."), ("{disk}", "-readconfig")],
)
def test_an_attribute_leads_nowhere_else_and_is_no_option(word: str, value: str) -> None:
    with pytest.raises(HapteraError, match="attribute disk is"):
        asyncio.run(machine("-drive", word, disk=value).power_on())
    asyncio.run(machine("-drive", word, disk="n01-1.img").power_on())


def test_a_qemu_that_is_not_installed_is_told() -> None:
    with pytest.raises(HapteraError, match="no-such-qemu: No such file or directory"):
        asyncio.run(machine(program="no-such-qemu").power_on())


def test_a_domain_named_by_a_number_is_not_asked_for() -> None:
    target = Target(node_id("7"), settings=libvirt.module.settings({}))
    with pytest.raises(HapteraError, match="virsh takes a number for that of a domain which runs"):
        LibvirtDomain(target)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "<disk><boot order='1'/></disk><interface><boot order='2'/></interface>",
            '<disk><boot order="2" /></disk><interface><boot order="1" /></interface>',
        ),
        (
            "<interface/><interface><boot order='3'/></interface><disk><boot order='9'/></disk>",
            '<interface><boot order="1" /></interface><interface><boot order="2" /></interface>'
            '<disk><boot order="3" /></disk>',
        ),
    ],
)
def test_a_domain_with_an_order_of_devices_boots_by_its_first_card(before: str, after: str) -> None:
    def domain(devices: str) -> str:
        return f"<domain><os /><devices>{devices}</devices></domain>"

    assert network_first(domain(before)) == domain(after)


@pytest.mark.parametrize(
    "text",
    ["", "<domain />", "<domain><os/><devices><disk><boot order='1'/></disk></devices></domain>"],
)
def test_what_cannot_boot_from_the_network_is_told(text: str) -> None:
    with pytest.raises(LibvirtError, match=r"no definition of a domain|no network card"):
        network_first(text)


@pytest.mark.net
@pytest.mark.parametrize("said", ["hello\n", "{}", "x" * (1 << 17), "[" * 5_000 + "\n", ""])
async def test_a_socket_that_is_no_monitor_is_told(tmp_path: Path, said: str) -> None:
    socket = tmp_path / "monitor"

    async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said.encode())
        writer.close()

    server = await asyncio.start_unix_server(speak, socket)
    async with server:
        with pytest.raises(MonitorError, match=r"hung up|is not QEMU's"):
            await command(socket, "query-status")


@pytest.mark.net
@real
def test_a_machine_starts_from_the_network_once_and_shuts_down_when_asked(tmp_path: Path) -> None:
    files = tmp_path / "tftp"
    files.mkdir()
    (files / "loader").write_bytes(program("N", STARTS_AGAIN))
    card = ("-netdev", f"user,id=card,restrict=on,tftp={files},bootfile=loader")
    with computer(tmp_path) as one:
        bmc = one.qemu(*card, "-device", "virtio-net-pci,netdev=card")

        async def story() -> None:
            assert await look_power(bmc) is Power.OFF
            await boot(bmc)
            await until_said(one, "ND")
            assert await look_power(bmc) is Power.ON
            await switch_off(bmc)  # It obeys: nothing is cut.
            assert await look_power(bmc) is Power.OFF
            await switch_on(bmc)
            await until_said(one, "NDD")
            await force_off(bmc)
            assert await look_power(bmc) is Power.OFF

        asyncio.run(story())


@pytest.mark.net
@real
def test_a_machine_that_hangs_is_not_known_to_be_off_and_nothing_is_done(tmp_path: Path) -> None:
    with computer(tmp_path) as one:
        bmc = one.qemu()

        async def story() -> None:
            await switch_on(bmc)
            os.kill(one.pid, signal.SIGSTOP)
            for ask in (look_power, switch_off):
                with pytest.raises(MonitorError, match="does not answer"):
                    await ask(bmc)
            with pytest.raises(Refused, match=r"QEMU does not start: .*lock"):
                await switch_on(bmc)
            os.kill(one.pid, signal.SIGCONT)

        asyncio.run(story())
        # It has those who waited for it to hang up on first.
        wait_for(lambda: _reads(bmc) is Power.ON)


@pytest.mark.net
@real
def test_a_machine_that_was_killed_is_off_and_starts_again(tmp_path: Path) -> None:
    with computer(tmp_path) as one:
        bmc = one.qemu()

        async def story() -> None:
            await switch_on(bmc)
            await until_said(one, "D")
            ended = os.pidfd_open(one.pid)
            os.kill(one.pid, signal.SIGKILL)
            asyncio.get_running_loop().add_reader(ended, gone.set)
            await gone.wait()
            assert await look_power(bmc) is Power.OFF
            await switch_on(bmc)
            await until_said(one, "DD")

        gone = asyncio.Event()
        asyncio.run(story())


@pytest.mark.net
@real
def test_a_command_line_that_is_none_is_told_in_qemus_words(tmp_path: Path) -> None:
    with computer(tmp_path) as one:
        bmc = one.qemu("-no-such-option")
        with pytest.raises(Refused, match="-no-such-option: invalid option"):
            asyncio.run(switch_on(bmc))
        assert asyncio.run(bmc.status()) == "off"


@pytest.mark.net
@real
def test_a_domain_starts_from_the_network_once_and_shuts_down_when_asked() -> None:
    with libvirtd() as one:
        bmc = one.domain()

        async def story() -> None:
            assert await look_power(bmc) is Power.OFF
            await boot(bmc)
            assert await look_power(bmc) is Power.ON
            assert "<boot dev='network'/>" in one.virsh("dumpxml", "n01")
            await force_off(bmc)
            assert await look_power(bmc) is Power.OFF
            assert "<boot dev='network'/>" not in one.virsh("dumpxml", "n01")
            await switch_on(bmc)
            await until_said(one, "D")
            await switch_off(bmc)  # It obeys: nothing is cut.
            assert await look_power(bmc) is Power.OFF

        asyncio.run(story())


@pytest.mark.net
@real
def test_the_power_of_many_domains_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with libvirtd() as one, tempfile.TemporaryDirectory() as folder:
        definition = one.virsh("dumpxml", "n01")
        for name in ("n02", "n03"):
            other = Path(folder) / f"{name}.xml"
            other.write_text(re.sub("<uuid>.*</uuid>", "", definition).replace("n01", name))
            one.virsh("define", str(other))
        bmcs = {node_id(name): one.domain(bmc=name) for name in ("n01", "n02", "n03", "n04")}
        asyncio.run(bmcs[node_id("n02")].power_on())
        heard = overheard(TOOL, Path(folder), monkeypatch)

        for read in (2, 3):  # Both readings of what seems to have changed, then one.
            found = asyncio.run(libvirt.look_power(bmcs))
            told = {one.name: str(power) for one, power in found.items()}
            assert told == {
                "n01": "off",
                "n02": "on",
                "n03": "off",
                "n04": "libvirt tells no power of 'n04'",
            }
            assert len(heard.read_text().splitlines()) == read


@pytest.mark.net
@real
def test_a_domain_that_is_not_there_is_not_known_to_be_off() -> None:
    with libvirtd() as one:
        with pytest.raises(LibvirtError, match="failed to get domain 'other'"):
            asyncio.run(one.domain(bmc="other").status())
        with pytest.raises(Refused, match="domain is not running"):
            asyncio.run(one.domain().force_off())


def _reads(bmc: QemuMachine) -> Power | None:
    with suppress(MonitorError):
        return asyncio.run(look_power(bmc))
    return None


SITE = """\
cluster: vms
modules:
  qemu: {settings: {arguments: [-machine, pc, -accel, tcg, -m, "{memory_mb}", -nodefaults]}}
nodes:
  n01: {platform: qemu, memory_mb: 16, jobs: none, has_agent: never}
desired:
  n01: {power: on}
"""


@pytest.mark.net
@real
def test_a_parent_keeps_its_machine_on_and_the_machine_outlives_the_parent() -> None:
    if shutil.which(QEMU) is None:
        pytest.skip(f"{QEMU} is missing: apt install qemu-system-x86")
    # The path of a socket is short.
    with tempfile.TemporaryDirectory(prefix="vm", dir="/tmp") as folder:
        home = Path(folder)
        (home / "site.yaml").write_text(SITE)
        pid_file = home / ".haptera" / "modules" / "qemu" / "n01.pid"
        options = ("--site", str(home / "site.yaml"))

        def running(but: int | None = None) -> int | None:
            """The machine's QEMU, once the parent knows that it has power."""
            code, out, _ = typed(
                "get", "node:n01", "-o", "json", folder=home, client=client_of(home)
            )
            view = json.loads(out) if code == 0 else {}
            pid = int(pid_file.read_text() or 0) if pid_file.exists() else None
            return pid if view.get("condition") == "converged" and pid != but else None

        try:
            with served(home, *options):
                first = wait_for(running)
                os.kill(first, signal.SIGKILL)
                second = wait_for(lambda: running(but=first))
            os.kill(second, 0)  # It is still there.
            with served(home, *options):
                assert wait_for(running) == second
        finally:
            with suppress(FileNotFoundError, ProcessLookupError):
                os.kill(int(pid_file.read_text()), signal.SIGKILL)
