"""The ipmi module on the bench with a BMC of values, and against a real one."""

import asyncio
import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from haptera.kinds.node import Power
from haptera.model.entity import node_id
from haptera.model.views import Condition
from haptera.modules.ipmi import boot, force_off, look_power, module, switch_off, switch_on
from haptera.modules.ipmi.bmc import IpmiBmc, IpmiError, IpmiSettings
from haptera.sdk import HapteraError, Secret, Target
from haptera.testing.bench import Bench
from tests.modules.ipmi_rig import PASSWORD, USER, Machine, machine


@dataclass
class Chassis:
    """Stands for a BMC that answers."""

    shows: str = "off"
    told: list[str] = field(default_factory=list)

    async def reading(self) -> str:
        return self.shows

    async def power_on(self) -> None:
        self.told.append("on")
        self.shows = "on"

    async def power_off(self) -> None:
        self.told.append("soft")
        self.shows = "off"

    async def force_off(self) -> None:
        self.told.append("off")
        self.shows = "off"


@dataclass
class Silent(Chassis):
    """Stands for one that answers nothing."""

    async def reading(self) -> str:
        raise IpmiError("BMC does not answer")


def test_a_machine_is_started_once_it_was_read_to_be_off() -> None:
    bench = Bench(module, {"platform": "ipmi"}, on=(chassis := Chassis()))  # type: ignore[arg-type]
    node = asyncio.run(bench.settle({"power": "on"}))
    assert node.condition is Condition.CONVERGED
    assert chassis.told == ["on"]


def test_a_machine_is_asked_to_shut_down() -> None:
    bench = Bench(module, {"platform": "ipmi"}, on=(chassis := Chassis("on")))  # type: ignore[arg-type]
    assert asyncio.run(bench.settle({"power": "off"})).condition is Condition.CONVERGED
    assert chassis.told == ["soft"]


def test_a_bmc_that_does_not_answer_causes_no_action() -> None:
    bench = Bench(module, {"platform": "ipmi"}, on=(chassis := Silent()))  # type: ignore[arg-type]
    node = asyncio.run(bench.settle({"power": "on"}))
    assert node.condition is Condition.STUCK
    assert chassis.told == []
    assert set(bench.calls) == {"look_power"}


def test_a_machine_of_the_network_is_not_started_without_an_offer() -> None:
    attributes = {"platform": "ipmi", "boot_from": "network"}
    bench = Bench(module, attributes, on=(chassis := Chassis()))  # type: ignore[arg-type]
    node = asyncio.run(bench.settle({"power": "on"}))
    assert (node.condition, node.unblock) == (Condition.WAITING, "netboot=offered of node:n01")
    assert chassis.told == []


def test_a_password_longer_than_ipmi_allows_is_refused() -> None:
    with pytest.raises(HapteraError, match="at most 20 bytes"):
        module.settings({"user": USER, "password": "x" * 21})


def bmc_of(machine: Machine, **more: object) -> IpmiBmc:
    settings = {"user": USER, "password": PASSWORD, "cipher_suite": 3, "graceful_s": 0.1, **more}
    attributes = {"bmc": machine.address}
    return IpmiBmc(Target(node_id("n01"), attributes, settings=module.settings(settings)))


def test_a_node_without_a_bmc_is_told_what_to_write() -> None:
    with pytest.raises(HapteraError, match="has no attribute bmc"):
        IpmiBmc(Target(node_id("n01"), settings=IpmiSettings(USER, Secret(PASSWORD))))


@pytest.mark.net
@pytest.mark.campaign
def test_a_real_bmc_starts_from_the_network_and_cuts_the_power(tmp_path: Path) -> None:
    async def story(one: Machine) -> None:
        bmc = bmc_of(one)
        assert await look_power(bmc) is Power.OFF
        await boot(bmc)
        assert await look_power(bmc) is Power.ON
        await switch_off(bmc)  # Its system does not obey, so its power is cut.
        assert await look_power(bmc) is Power.OFF
        await switch_on(bmc)
        await force_off(bmc)
        assert await look_power(bmc) is Power.OFF

    with machine(tmp_path) as one:
        asyncio.run(story(one))
        assert one.record == [
            *("set boot pxe", "set power 1"),
            *("set shutdown 1", "set power 0"),
            *("set power 1", "set power 0"),
        ]


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
def test_a_change_counts_once_two_readings_agree(tmp_path: Path) -> None:
    async def story(one: Machine) -> None:
        bmc = bmc_of(one)
        assert await bmc.reading() == "off"
        one.lie_once()
        with pytest.raises(IpmiError, match="says on, then off"):
            await bmc.reading()
        assert await bmc.reading() == "off"

    with machine(tmp_path) as one:
        asyncio.run(story(one))


@pytest.mark.net
@pytest.mark.campaign
@pytest.mark.parametrize("fault", ["hangs", "is gone", "lets nobody in"])
def test_a_bmc_that_cannot_be_asked_says_so(tmp_path: Path, fault: str) -> None:
    with machine(tmp_path) as one:
        match fault:
            case "hangs":
                one.bmc.send_signal(signal.SIGSTOP)
            case "is gone":
                one.bmc.kill()
                one.bmc.wait()
        secret = "another" if fault == "lets nobody in" else PASSWORD
        with pytest.raises(IpmiError, match=r"does not answer|lets nobody in, or is not there"):
            asyncio.run(bmc_of(one, password=secret).reading())
        if fault == "hangs":
            one.bmc.send_signal(signal.SIGCONT)
        assert one.record == []


@pytest.mark.net
@pytest.mark.campaign
def test_the_password_is_in_no_process_list(tmp_path: Path) -> None:
    async def story(one: Machine) -> None:
        looking = asyncio.create_task(bmc_of(one).reading())
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
