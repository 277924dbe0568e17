"""What only the ipmi module has; what each module of BMCs has to do is in test_power.py."""

import asyncio
import os
from pathlib import Path

import pytest

from haptera.kinds.node import Power
from haptera.model.entity import node_id
from haptera.modules.ipmi import module
from haptera.modules.ipmi.bmc import TOOL, IpmiBmc, IpmiSettings
from haptera.modules.power import UnsettledError, boot, look_power, switch_off
from haptera.sdk import HapteraError, Secret, Target
from tests.modules.ipmi_rig import PASSWORD, USER, Machine, bmc_of, machine, overheard


def test_a_password_longer_than_ipmi_allows_is_refused() -> None:
    with pytest.raises(HapteraError, match="at most 20 bytes"):
        module.settings({"user": USER, "password": "x" * 21})


def test_a_node_without_a_bmc_is_told_what_to_write() -> None:
    with pytest.raises(HapteraError, match="has no attribute bmc"):
        IpmiBmc(Target(node_id("n01"), settings=IpmiSettings(USER, Secret(PASSWORD))))


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [("2001:db8::21", "2001:db8::21", "623"), ("[2001:db8::21]:99", "2001:db8::21", "99")],
)
def test_ipmitool_gets_an_address_of_ipv6_without_brackets(
    address: str, host: str, port: str
) -> None:
    settings = IpmiSettings(USER, Secret(PASSWORD))
    words, _ = IpmiBmc(Target(node_id("n01"), {"bmc": address}, settings=settings))._command()
    assert (words[words.index("-H") + 1], words[words.index("-p") + 1]) == (host, port)


@pytest.mark.net
@pytest.mark.campaign
def test_a_start_from_the_network_and_a_cut_are_what_the_bmc_is_told(tmp_path: Path) -> None:
    async def story(one: Machine) -> None:
        await boot(bmc_of(one))
        await switch_off(bmc_of(one))  # Its system does not obey.

    with machine(tmp_path) as one:
        asyncio.run(story(one))
        told = ["set boot pxe", "set power 1", "set shutdown 1", "set power 0"]
        assert one.record == told


@pytest.mark.net
@pytest.mark.campaign
def test_a_system_that_shuts_down_keeps_its_power_until_it_has(tmp_path: Path) -> None:
    with machine(tmp_path) as one:
        (tmp_path / "obeys").touch()
        one.set_power("1")
        asyncio.run(switch_off(bmc_of(one, graceful_s=30)))
        assert (one.power, one.record) == ("0", ["set shutdown 1"])


@pytest.mark.net
@pytest.mark.campaign
@pytest.mark.parametrize("why", ["it refuses", "the site says so"])
def test_a_bmc_that_asks_no_system_to_shut_down_cuts_its_power(tmp_path: Path, why: str) -> None:
    with machine(tmp_path) as one:
        one.set_power("1")
        if why == "it refuses":
            (tmp_path / "refuses").touch()
        quirks = "no-shutdown" if why == "the site says so" else ""
        asyncio.run(switch_off(bmc_of(one, quirks, graceful_s=30)))
        assert (one.power, one.record) == ("0", ["set power 0"])


@pytest.mark.net
@pytest.mark.campaign
@pytest.mark.parametrize(
    ("quirks", "words"),
    [("", "chassis bootdev pxe\n"), ("uefi-boot", "chassis bootdev pxe options=efiboot\n")],
)
def test_a_bmc_is_told_that_the_firmware_is_uefi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quirks: str, words: str
) -> None:
    with machine(tmp_path) as one:
        # The emulator keeps no more than the device.
        heard = overheard(TOOL, tmp_path, monkeypatch)
        asyncio.run(bmc_of(one, quirks).boot_from_network_once())
        assert heard.read_text().endswith(words)
        assert one.record == ["set boot pxe"]


@pytest.mark.net
@pytest.mark.campaign
@pytest.mark.parametrize(
    ("power", "is_", "told"),
    [("0", Power.OFF, "says on, then off"), ("1", Power.ON, "says off, then on")],
)
def test_a_change_counts_once_two_readings_agree(
    power: str, is_: Power, told: str, tmp_path: Path
) -> None:
    async def story(one: Machine) -> None:
        bmc = bmc_of(one)
        assert await look_power(bmc) is is_
        one.lie_once()
        with pytest.raises(UnsettledError, match=told):
            await look_power(bmc)
        assert await look_power(bmc) is is_

    with machine(tmp_path) as one:
        one.set_power(power)
        asyncio.run(story(one))
        assert one.record == []


@pytest.mark.net
@pytest.mark.campaign
def test_a_system_that_goes_on_loses_its_power_though_one_reading_said_off(tmp_path: Path) -> None:
    with machine(tmp_path) as one:
        one.set_power("1")
        one.lie_once()
        asyncio.run(switch_off(bmc_of(one, graceful_s=3)))
        assert (one.power, one.record) == ("0", ["set shutdown 1", "set power 0"])


@pytest.mark.net
@pytest.mark.campaign
def test_the_password_is_in_no_process_list(tmp_path: Path) -> None:
    async def story(one: Machine) -> None:
        looking = asyncio.create_task(bmc_of(one).status())
        seen = False
        while not looking.done():
            lines = [_arguments(pid) for pid in os.listdir("/proc") if pid.isdigit()]
            tools = [line for line in lines if line.startswith(b"ipmitool")]
            seen = seen or bool(tools)
            assert not [line for line in tools if PASSWORD.encode() in line]
            await asyncio.sleep(0)
        assert seen
        await looking

    with machine(tmp_path) as one:
        asyncio.run(story(one))


def _arguments(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
