"""What only the ipmi module has; what each module of BMCs has to do is in test_power.py."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from haptera.kinds.node import Power
from haptera.model.entity import node_id
from haptera.modules.console import ConsoleError, ConsoleRecord
from haptera.modules.effects import DeviceError, Effect, LoginError, NotYetError
from haptera.modules.ipmi import module
from haptera.modules.ipmi.answers import COMPLETIONS, SESSION_WORDS, Completion, failure
from haptera.modules.ipmi.bmc import TOOL, IpmiBmc, IpmiSettings
from haptera.modules.ipmi.consoles import record_session
from haptera.modules.power import UnsettledError, boot, look_power, switch_off
from haptera.sdk import HapteraError, Refused, Secret, Target
from haptera.sdk.commands import clean
from tests.modules.ipmi_rig import (
    PASSWORD,
    USER,
    Machine,
    bmc_of,
    machine,
    overheard,
    settings_of,
)


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
    words = IpmiBmc(Target(node_id("n01"), {"bmc": address}, settings=settings)).program().words
    assert (words[words.index("-H") + 1], words[words.index("-p") + 1]) == (host, port)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({}, "-I lanplus -C 3 -L ADMINISTRATOR"),
        ({"bmc_cipher_suite": "17"}, "-I lanplus -C 17 -L ADMINISTRATOR"),
        ({"bmc_privilege": "operator"}, "-I lanplus -C 3 -L OPERATOR"),
        ({"bmc_interface": "lan", "bmc_privilege": "user"}, "-I lan -C 3 -L USER"),
    ],
)
def test_a_node_is_asked_as_it_says_itself(own: dict[str, str], words: str) -> None:
    target = Target(node_id("n01"), {"bmc": "10.0.0.1", **own}, settings=settings_of())
    program = IpmiBmc(target).program("mc")
    assert " ".join(program.words).startswith(f"ipmitool {words} -H 10.0.0.1 -p 623 ")
    assert program.environment == clean(IPMI_PASSWORD=PASSWORD)


@pytest.mark.parametrize(
    "own",
    [{"bmc_cipher_suite": "0"}, {"bmc_cipher_suite": "many"}, {"bmc_privilege": "root"},
     {"bmc_interface": "serial-terminal"}],
)  # fmt: skip
def test_what_a_node_cannot_say_is_told_without_the_password(own: dict[str, str]) -> None:
    target = Target(node_id("n01"), {"bmc": "10.0.0.1", **own}, settings=settings_of())
    ((name, text),) = own.items()
    with pytest.raises(HapteraError, match=f"{name}: {text}") as told:
        IpmiBmc(target)
    assert PASSWORD not in str(told.value)


def test_a_suite_that_lets_everybody_in_is_refused() -> None:
    with pytest.raises(HapteraError, match="cipher_suite is between 1 and 17"):
        settings_of(cipher_suite=0)


@pytest.mark.net
@pytest.mark.campaign
def test_a_real_bmc_lets_an_operator_switch_and_a_user_read(tmp_path: Path) -> None:
    async def story(address: str) -> None:
        def of(**own: str) -> IpmiBmc:
            attributes = {"bmc": address, **own}
            return IpmiBmc(Target(node_id("n01"), attributes, settings=settings_of()))

        await of(bmc_privilege="operator").power_on()
        assert await of(bmc_privilege="user").status() == "on"
        with pytest.raises(Refused, match="Insufficient privilege level"):
            await of(bmc_privilege="user").force_off()
        with pytest.raises(HapteraError, match="does not have this cipher suite"):
            await of(bmc_cipher_suite="17").status()

    with machine(tmp_path) as one:
        asyncio.run(story(one.address))


@pytest.mark.net
@pytest.mark.campaign
def test_a_real_bmc_says_what_it_is(tmp_path: Path) -> None:
    with machine(tmp_path) as one:
        found = asyncio.run(bmc_of(one, "uefi-boot").survey())
        assert (found.power, found.firmware, found.quirks) == ("off", "9.08", ["uefi-boot"])
        assert found.maker is not None
        assert one.record == []


@pytest.mark.net
@pytest.mark.campaign
def test_a_login_that_is_refused_is_not_repeated_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(one: Machine) -> None:
        for _ in range(3):
            with pytest.raises(LoginError, match="refuses the login"):
                await bmc_of(one, password="a wrong one").status()
        record = ConsoleRecord(tmp_path / "console")
        with pytest.raises(ConsoleError, match="not asked again for"):
            await record_session(bmc_of(one, password="a wrong one"), record)
        assert await bmc_of(one).status() == "off"

    with machine(tmp_path) as one:
        heard = overheard(TOOL, tmp_path, monkeypatch)
        asyncio.run(story(one))
        assert len(heard.read_text().splitlines()) == 2


@pytest.mark.net
@pytest.mark.campaign
async def test_a_start_from_the_network_and_a_cut_are_what_the_bmc_is_told(tmp_path: Path) -> None:
    with machine(tmp_path) as one:
        await boot(bmc_of(one))
        await switch_off(bmc_of(one))  # Its system does not obey.

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
@pytest.mark.parametrize("why", ["its script fails", "the site says so"])
def test_a_bmc_that_asks_no_system_to_shut_down_cuts_its_power(tmp_path: Path, why: str) -> None:
    with machine(tmp_path) as one:
        one.set_power("1")
        if why == "its script fails":  # FFh: the system may have been asked, and has its time.
            (tmp_path / "refuses").touch()
        quirks = "no-shutdown" if why == "the site says so" else ""
        asyncio.run(switch_off(bmc_of(one, quirks, graceful_s=0.5)))
        assert (one.power, one.record) == ("0", ["set power 0"])


FAILING = """#!/bin/sh
cd {folder}
case "$*" in
*status) [ -e off ] && echo "Chassis Power is off" || echo "Chassis Power is on" ;;
*soft) echo soft >>asked; echo "Set Chassis Power Control to Soft failed: $(cat words)" >&2
  exit 1 ;;
*off) echo off >>asked; touch off ;;
esac
"""


def ipmitool(folder: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> Path:
    """In place of ipmitool: its answer to `soft` fails in these words; what it was asked."""
    (folder / "bin").mkdir()
    (folder / "words").write_text(words)
    (folder / "asked").touch()
    tool = folder / "bin" / TOOL
    tool.write_text(FAILING.format(folder=folder))
    tool.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    return folder / "asked"


@pytest.mark.parametrize("one", COMPLETIONS, ids=lambda one: f"{one.code:02X}h")
def test_the_power_is_cut_where_a_system_cannot_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: Completion
) -> None:
    asked = ipmitool(tmp_path, monkeypatch, one.words)
    bmc = IpmiBmc(Target(node_id("n01"), {"bmc": "10.0.0.1"}, settings=settings_of(graceful_s=60)))
    match one.effect:
        case Effect.LACKING:
            asyncio.run(switch_off(bmc))
        case Effect.NEVER:
            with pytest.raises(Refused, match=rf"\({one.code:02X}h\)"):
                asyncio.run(switch_off(bmc))
        case Effect.NOT_YET:
            with pytest.raises(NotYetError):
                asyncio.run(bmc.ask_to_shut_down())
        case Effect.UNKNOWN:
            with pytest.raises(DeviceError):
                asyncio.run(bmc.ask_to_shut_down())
    cut = ["off"] * (one.effect is Effect.LACKING)
    assert asked.read_text().split() == ["soft", *cut]


def test_what_passes_is_told_from_what_never_will_be() -> None:
    by_code = {one.code: one.effect for one in COMPLETIONS}
    assert {by_code[code] for code in (0xC0, 0xD0, 0xD1, 0xD2)} == {Effect.NOT_YET}
    assert {by_code[code] for code in (0xC3, 0xCE, 0xCF, 0xFF)} == {Effect.UNKNOWN}
    assert {by_code[code] for code in (0xC1, 0xCC, 0xD5, 0xD6)} == {Effect.LACKING}
    assert by_code[0xD4] is Effect.NEVER


def test_the_words_of_a_completion_are_those_of_the_installed_ipmitool() -> None:
    place = shutil.which(TOOL)
    if place is None:
        pytest.skip("ipmitool is missing")
    content = Path(place).read_bytes()
    missing = [one for one in COMPLETIONS if one.code >= 0xC0 and one.words.encode() not in content]
    assert missing == []


def test_the_page_has_each_completion_with_its_effect() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "ipmi.md"
    rows = [row for row in page.read_text().splitlines() if row.startswith("| ")]
    missing = [
        one
        for one in COMPLETIONS
        if not any(f"{one.code:02X}h" in row and f"| {one.effect} |" in row for row in rows)
    ]
    assert missing == []


LOGINS = {
    "> RAKP 2 HMAC is invalid": (LoginError, "refuses the login"),
    "RAKP 2 message indicates an error : unauthorized name": (LoginError, "refuses the login"),
    "RAKP 2 message indicates an error : insufficient resources for session":
        (NotYetError, "has no place for a session"),
    "Error in open session response message : no matching cipher suite":
        (HapteraError, "does not have this cipher suite"),
    "Get Auth Capabilities error": (DeviceError, "does not answer"),
    # A session of IPMI 2.0 whose role is refused only once it is there, and those of IPMI 1.5.
    "Set Session Privilege Level to ADMINISTRATOR failed: Unknown (0x81)":
        (LoginError, "refuses the login: .*ADMINISTRATOR"),
    "Set Session Privilege Level to ADMINISTRATOR failed": (DeviceError, "does not answer"),
    "Address lookup for bmc1 failed": (DeviceError, "Address lookup for bmc1 failed"),
    "Activate Session error:\tInvalid user name": (LoginError, "refuses the login"),
    "Activate Session error:\tNULL user name not enabled": (LoginError, "refuses the login"),
    "Activate Session error:\tRequested privilege level exceeds limit":
        (LoginError, "refuses the login"),
    "Activate Session error:\tInsufficient privilege level": (LoginError, "refuses the login"),
    "Activate Session error:\tNo session slot available":
        (NotYetError, "has no place for a session"),
    "Activate Session error:\tNo slot available for given user - limit reached":
        (NotYetError, "has no place for a session"),
    "Activate Session command failed": (DeviceError, "does not answer"),
}  # fmt: skip


@pytest.mark.parametrize("words", LOGINS)
def test_a_bmc_that_refuses_is_told_from_one_that_is_not_there(words: str) -> None:
    kind, match = LOGINS[words]
    last = "Error: Unable to establish IPMI v2 / RMCP+ session"
    with pytest.raises(kind, match=match):
        raise failure("BMC at 10.0.0.1:623", f"{words}\n{last}\n")


@pytest.mark.parametrize(
    "ends",
    ["Close Session command failed", "Close Session command failed: Invalid data field in request",
     "Failed to Close Session: invalid session ID 0200a1b2"],
)  # fmt: skip
def test_what_a_session_ends_with_is_not_what_a_command_ended_with(ends: str) -> None:
    said = "Set Chassis Power Control to Soft failed: Node busy"
    error = failure("BMC at 10.0.0.1:623", f"Running Get VSO Capabilities\n{said}\n{ends}\n")
    assert (type(error), str(error)) == (NotYetError, "Node busy (C0h)")
    lost = failure("BMC at 10.0.0.1:623", f"Unable to set Chassis Power Control to Soft\n{ends}\n")
    assert (type(lost), "Unable to set" in str(lost)) == (DeviceError, True)


def test_the_words_of_a_session_are_those_of_the_installed_ipmitool() -> None:
    place = shutil.which(TOOL)
    if place is None:
        pytest.skip("ipmitool is missing")
    content = Path(place).read_bytes()
    assert [one for one in SESSION_WORDS if one.encode() not in content] == []


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
async def test_the_password_is_in_no_process_list(tmp_path: Path) -> None:
    with machine(tmp_path) as one:
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


def _arguments(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
