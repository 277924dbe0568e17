"""What each module of BMCs has to do: on the bench, and against a real BMC of its language."""

import asyncio
import signal
import subprocess
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from haptera.kinds.node import Power
from haptera.model.answers.views import Condition
from haptera.model.entity import node_id
from haptera.modules import ipmi, libvirt, qemu, redfish
from haptera.modules.effects import INSIST_S, DeviceError, LoginError, NotYetError
from haptera.modules.power import (
    MachineBmc,
    PowerName,
    boot,
    force_off,
    look_power,
    switch_off,
    switch_on,
)
from haptera.modules.quirks import quirks_of
from haptera.modules.redfish.bmc import end_sessions
from haptera.sdk import HapteraError, Module, Refused, Target
from haptera.testing.bench import Bench
from tests.modules import ipmi_rig, redfish_rig

modules = pytest.mark.parametrize(
    "module", [one.module for one in (ipmi, libvirt, qemu, redfish)], ids=lambda one: one.name
)


@dataclass
class Chassis:
    """Stands for a BMC that answers."""

    shows: PowerName = "off"
    obeys: bool = True
    told: list[str] = field(default_factory=list)
    address: str = "bench"
    name: str = "n01"

    @property
    def graceful_s(self) -> float:
        """Two readings' time for a system that obeys; none is waited for one that does not."""
        return 20 if self.obeys else 0

    async def status(self) -> PowerName:
        return self.shows

    async def listed(self) -> dict[str, PowerName]:
        """As a libvirt, which tells of all that it keeps at once."""
        return {self.name: await self.status()}

    async def boot_from_network_once(self) -> None:
        self.told.append("pxe")

    async def power_on(self) -> None:
        self.told.append("on")
        self.shows = "on"

    async def ask_to_shut_down(self) -> bool:
        self.told.append("soft")
        if self.obeys:
            self.shows = "off"
        return True

    async def force_off(self) -> None:
        self.told.append("off")
        self.shows = "off"


class Rude(Chassis):
    """Stands for one that cannot ask an operating system anything."""

    async def ask_to_shut_down(self) -> bool:
        return False


class Silent(Chassis):
    """Stands for one that answers nothing."""

    async def status(self) -> PowerName:
        raise DeviceError("BMC does not answer")


def on_bench(module: Module[Any], chassis: Chassis, **more: str) -> Bench[Any]:
    return Bench(module, {"platform": module.name, **more}, on=chassis)


@modules
def test_a_machine_is_started_once_it_was_read_to_be_off(module: Module[Any]) -> None:
    bench = on_bench(module, chassis := Chassis())
    node = asyncio.run(bench.settle({"power": "on"}))
    assert node.condition is Condition.CONVERGED
    assert chassis.told == ["on"]


@modules
@pytest.mark.parametrize(
    ("chassis", "told"),
    [
        (Chassis("on"), ["soft"]),
        (Chassis("on", obeys=False), ["soft", "off"]),
        (Rude("on"), ["off"]),
    ],
)
def test_a_machine_is_asked_to_shut_down_before_its_power_is_cut(
    module: Module[Any], chassis: Chassis, told: list[str]
) -> None:
    chassis = type(chassis)(chassis.shows, chassis.obeys)
    node = asyncio.run(on_bench(module, chassis).settle({"power": "off"}))
    assert node.condition is Condition.CONVERGED
    assert chassis.told == told


@dataclass
class Moody(Chassis):
    """Stands for one that answers commands with these, one after the other, then does them."""

    moods: list[Exception] = field(default_factory=list)

    async def ask_to_shut_down(self) -> bool:
        self._answer("soft?")
        return await super().ask_to_shut_down()

    async def power_on(self) -> None:
        self._answer("on?")
        await super().power_on()

    async def force_off(self) -> None:
        self._answer("off?")
        await super().force_off()

    def _answer(self, asked: str) -> None:
        if self.moods:
            self.told.append(asked)
            raise self.moods.pop(0)


def busy() -> NotYetError:
    return NotYetError("Node busy", after_s=0)


def test_a_busy_bmc_is_asked_again_before_the_power_is_cut() -> None:
    chassis = Moody("on", moods=[busy(), busy()])
    asyncio.run(switch_off(chassis))
    assert chassis.told == ["soft?", "soft?", "soft"]


def test_a_bmc_that_is_busy_for_all_the_time_that_a_system_has_cuts_the_power() -> None:
    chassis = Moody("on", obeys=False, moods=[busy()])
    asyncio.run(switch_off(chassis))
    assert chassis.told == ["soft?", "off"]


def test_a_system_that_may_have_been_asked_has_its_time() -> None:
    chassis = Moody("off", moods=[DeviceError("Timeout")])
    asyncio.run(switch_off(chassis))
    assert chassis.told == ["soft?"]


def test_who_may_not_ask_a_system_to_shut_down_does_not_cut_its_power() -> None:
    chassis = Moody("on", moods=[Refused("Insufficient privilege level")])
    with pytest.raises(Refused, match="privilege"):
        asyncio.run(switch_off(chassis))
    assert chassis.told == ["soft?"]


@pytest.mark.parametrize(("command", "word"), [(switch_on, "on"), (force_off, "off")])
def test_a_busy_bmc_is_commanded_again(
    command: Callable[[MachineBmc], Coroutine[Any, Any, None]], word: str
) -> None:
    chassis = Moody(moods=[busy(), busy()])
    asyncio.run(command(chassis))
    assert chassis.told == [f"{word}?", f"{word}?", word]


def test_a_bmc_that_stays_busy_says_so_once_that_is_over() -> None:
    chassis = Moody(moods=[NotYetError("Node busy", after_s=INSIST_S)])
    with pytest.raises(NotYetError):
        asyncio.run(force_off(chassis))
    assert chassis.told == ["off?"]


class Blinking(Chassis):
    """Stands for one whose first reading fails."""

    failed = False

    async def status(self) -> PowerName:
        if not self.failed:
            self.failed = True
            raise DeviceError("Timeout")
        return await super().status()


def test_a_reading_that_fails_while_a_system_shuts_down_is_no_reason_to_give_up() -> None:
    chassis = Blinking("on")
    asyncio.run(switch_off(chassis))
    assert (chassis.shows, chassis.told) == ("off", ["soft"])


@modules
def test_a_bmc_that_does_not_answer_causes_no_action(module: Module[Any]) -> None:
    bench = on_bench(module, chassis := Silent())
    node = asyncio.run(bench.settle({"power": "off"}))
    assert node.condition is Condition.STUCK
    assert chassis.told == []
    assert set(bench.calls) == {"look_power"}


@modules
def test_a_machine_of_the_network_is_not_started_without_an_offer(module: Module[Any]) -> None:
    bench = on_bench(module, chassis := Chassis(), boot_from="network")
    node = asyncio.run(bench.settle({"power": "on"}))
    assert (node.condition, node.unblock) == (Condition.WAITING, "netboot=offered of node:n01")
    assert chassis.told == []


def test_a_quirk_that_nobody_knows_is_told_with_those_that_there_are() -> None:
    target = Target(node_id("n01"), {"bmc_quirks": "uefi-boot, no-power"})
    with pytest.raises(HapteraError, match="'no-power' is not a valid Quirk") as told:
        quirks_of(target)
    assert told.value.do == "choose from uefi-boot, boot-mode, no-shutdown"


# Real ones


@dataclass(frozen=True)
class Real:
    """A real BMC: how to reach it, by which password, and its process."""

    bmc: Callable[..., MachineBmc]
    process: "subprocess.Popen[bytes]"


@contextmanager
def real(language: str, directory: Path) -> Iterator[Real]:
    if language == "ipmi":
        with ipmi_rig.machine(directory) as one:
            yield Real(lambda **more: ipmi_rig.bmc_of(one, **more), one.bmc)
    else:
        with redfish_rig.service(directory) as service:
            address, auth = service.address, "session" if "session" in language else "basic"
            yield Real(
                lambda **more: redfish_rig.bmc_of(directory, address, auth=auth, **more),
                service.process,
            )
        asyncio.run(end_sessions())


languages = pytest.mark.parametrize("language", ["ipmi", "redfish", "redfish in sessions"])


# A fake system behind the emulator takes seconds to change, as many a real one does.
async def until(power: Power, bmc: MachineBmc) -> None:
    while await look_power(bmc) is not power:  # noqa: ASYNC110
        await asyncio.sleep(0.2)


@pytest.mark.net
@pytest.mark.campaign
@languages
def test_a_real_machine_starts_from_the_network_and_loses_its_power(
    tmp_path: Path, language: str
) -> None:
    async def story(bmc: MachineBmc) -> None:
        assert await look_power(bmc) is Power.OFF
        await boot(bmc)
        await until(Power.ON, bmc)
        await switch_off(bmc)
        await until(Power.OFF, bmc)
        await switch_on(bmc)
        await until(Power.ON, bmc)
        await force_off(bmc)
        await until(Power.OFF, bmc)

    with real(language, tmp_path) as one:
        asyncio.run(story(one.bmc()))


@pytest.mark.net
@pytest.mark.campaign
@languages
@pytest.mark.parametrize("fault", ["hangs", "is gone", "lets nobody in"])
def test_a_real_bmc_that_cannot_be_asked_says_so(tmp_path: Path, language: str, fault: str) -> None:
    with real(language, tmp_path) as one:
        match fault:
            case "hangs":
                one.process.send_signal(signal.SIGSTOP)
            case "is gone":
                one.process.kill()
                one.process.wait()
        known = {"password": "another"} if fault == "lets nobody in" else {}
        kind, words = (
            (LoginError, "refuses the login") if known else (DeviceError, "does not answer")
        )
        with pytest.raises(kind, match=words):
            asyncio.run(one.bmc(**known).status())
        one.process.send_signal(signal.SIGCONT)
