"""Sensors of BMCs: of a real one with its event log, and in the words of ipmitool on others."""

import asyncio
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from haptera.modules import bmc_sensors
from haptera.modules.bmc_sensors import SHARE_MAX, SensorPace, measure, paces
from haptera.modules.ipmi import event_log, module, sampling
from haptera.modules.ipmi.bmc import IpmiBmc
from haptera.modules.ipmi.event_log import LogCursor, LogInfo, advanced, info_of, to_read
from haptera.modules.ipmi.sensors import sensors_of
from haptera.sdk import Measured
from tests.modules.ipmi_rig import PASSWORD, USER, Machine, bmc_of, machine, overheard
from tests.modules.test_sensors import numbers_of

FULL = LogInfo(3, 100.0, ("3", "Not Available", "Not Available", "true"))
ECC = [0x00, 0x00, 0x02, 0x01, 0x02, 0x03, 0x68, 0x20, 0x00, 0x04, 0x0C, 0x09, 0x6F, 0x00, 0xFF]


def numbers(measured: Measured) -> dict[str, float]:
    return numbers_of(module, measured)


def record(
    number: int,
    sort: str = "Memory",
    event: str = "Correctable ECC",
    direction: str = "Assertion Event",
) -> str:
    """A record of a BMC whose clock was never set, as ipmitool prints it."""
    return f"""SEL Record ID          : {number:04x}
 Record Type           : 02
 Timestamp             : S+ 70/001 S+ 70/001
 Sensor Type           : {sort}
 Sensor Number         : 09
 Event Direction       : {direction}
 Event Data            : 00ffff
 Description           : {event}
"""


def test_a_sensor_hides_no_other_by_its_name() -> None:
    printed = '"Temp,1,degrees C,ok,3.1\nFan,2,RPM,ok,7.1\n'
    assert [one.name for one in sensors_of(printed)] == ['"Temp', "Fan"]


def test_sensors_are_told_apart_by_unit_name_and_place() -> None:
    printed = """Ambient Temp,23,degrees C,ok,7.1,System Board,Temperature,,,42.000,47.000
Front Temp,75.2,degrees F,unc,64.1,Air Inlet,Temperature
Temp,51,degrees C,ok,3.1,Processor,Temperature
Temp,58,degrees C,ucr,3.2,Processor,Temperature
Exhaust Temp,38,degrees C,ok,7.1,System Board,Temperature
Fan1A,7440,RPM,ok,7.1,System Board,Fan
Fan2A,0,RPM,lnr,7.1,System Board,Fan
Pwr Consumption,238,Watts,ok,7.1,System Board,Current
Fan Redundancy,0x01,discrete,ok,7.1
PS2 Fan,,,ns,10.2,Power Supply,Fan
P3V3,na,Volts,cr,7.1
half a line"""

    assert numbers(bmc_sensors.measured(sensors_of(printed))) == {
        "bmc.temp.inlet": pytest.approx(24.0),
        "bmc.temp.cpu[Temp@3.1]": 51.0,
        "bmc.temp.cpu[Temp@3.2]": 58.0,
        "bmc.temp.other[Exhaust_Temp]": 38.0,
        "bmc.fan.speed[Fan1A]": 7440.0,
        "bmc.fan.speed[Fan2A]": 0.0,
        "bmc.power[Pwr_Consumption]": 238.0,
        "bmc.state[Ambient_Temp]": 0.0,
        "bmc.state[Front_Temp]": 1.0,
        "bmc.state[Temp@3.1]": 0.0,
        "bmc.state[Temp@3.2]": 2.0,
        "bmc.state[Exhaust_Temp]": 0.0,
        "bmc.state[Fan1A]": 0.0,
        "bmc.state[Fan2A]": 3.0,
        "bmc.state[Pwr_Consumption]": 0.0,
    }


def read(cursor: LogCursor | None, info: LogInfo, *records: str) -> LogCursor:
    """The cursor after a log of these records, of which as many are read as are asked for."""
    count = to_read(cursor, info)
    return advanced(cursor, info, "\n".join(records[len(records) - count :]))


def holding(entries: int, at: str = "1", erased: str = "Not Available") -> LogInfo:
    return LogInfo(entries, 2.0, (str(entries), at, erased, "false"))


def counted(cursor: LogCursor) -> float | None:
    return event_log.measured(cursor)[event_log.corrected]


def test_what_a_log_held_at_first_is_history_and_what_comes_is_counted_once() -> None:
    cursor = read(None, holding(2), record(1), record(2))
    assert counted(cursor) == 0

    cursor = read(cursor, holding(4, "2"), *map(record, (1, 2, 3, 4)))
    assert counted(cursor) == 2
    assert to_read(cursor, holding(4, "2")) == 0

    cursor = read(cursor, holding(4, "2"), *map(record, (1, 2, 3, 4)))
    assert counted(cursor) == 2


def test_a_log_that_was_cleared_is_counted_from_its_beginning() -> None:
    cursor = read(None, holding(3), *map(record, (7, 8, 9)))
    cursor = read(cursor, holding(0, "2"))
    assert (cursor.last, counted(cursor)) == (None, 0)

    cursor = read(cursor, holding(1, "3"), record(1))
    assert counted(cursor) == 1

    # The same event again, after it was cleared: only that time tells them apart.
    cursor = read(cursor, holding(1, "3", "5"), record(1))
    assert counted(cursor) == 2

    # Cleared and refilled between two rounds: with more than there were.
    cursor = read(cursor, holding(3, "6", "5"), *map(record, (10, 11, 12)))
    assert counted(cursor) == 5


def test_a_full_log_that_overwrites_its_oldest_is_read_though_nothing_says_that_it_changed() -> (
    None
):
    cursor = read(None, FULL, *map(record, (65534, 65535, 1)))
    cursor = read(cursor, FULL, *map(record, (65535, 1, 2)))
    assert counted(cursor) == 1


def test_events_that_have_gone_and_records_of_makers_are_not_taken_for_errors() -> None:
    lines = (
        record(1, direction="Deassertion Event"),
        record(2, event="Uncorrectable ECC"),
        "SEL Record ID          : 0003\n Record Type           : e1  (OEM non-timestamped)\n"
        " OEM Defined           : 010203682000040c096f00ff01 [...h.....o...]\n",
        record(4, "Power Supply", "Failure detected"),
    )
    cursor = read(LogCursor(holding(0)), holding(4, "2"), *lines)
    assert numbers(event_log.measured(cursor)) == {
        "sel.used_percent": 2.0,
        "sel.corrected": 0.0,
        "sel.uncorrected": 1.0,
        "sel.events[Memory]": 1.0,
        "sel.events[maker]": 1.0,
        "sel.events[Power_Supply]": 1.0,
    }


def test_a_log_whose_use_is_not_said_has_none() -> None:
    info = info_of("Entries          : 3\nPercent Used     : unknown\nOverflow         : false\n")
    assert info == LogInfo(3, None, ("3", None, None, "false"))
    assert "sel.used_percent" not in numbers(event_log.measured(LogCursor(info)))


def test_a_slow_bmc_rests_so_long_that_sensors_have_their_share_of_its_time_only() -> None:
    pace, now, read_s = SensorPace(), 0.0, 0.0
    for _ in range(10):
        while not pace.is_due(now):
            now += 1
        pace.spent(now, now + 9, every_s=10)
        now, read_s = now + 9, read_s + 9
    while not pace.is_due(now):
        now += 1
    assert read_s / now <= SHARE_MAX


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Machine]:
    paces.clear()
    sampling._described_until.clear()
    with machine(tmp_path) as one:
        yield one


async def measured(bmc: IpmiBmc) -> Measured:
    return await measure(bmc, partial(sampling.read_sensors, bmc))


def add_event(one: Machine) -> None:
    host, port = one.address.split(":")
    words = [f"{byte:#x}" for byte in (0x0A, 0x44, *ECC, 0x00)]
    access = ["-I", "lanplus", "-C", "3", "-L", "ADMINISTRATOR", "-H", host, "-p", port]
    command = ["ipmitool", *access, "-U", USER, "-P", PASSWORD, "raw", *words]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.net
@pytest.mark.slow
def test_a_real_bmc_is_read_and_lacks_what_it_lacks(
    real: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = overheard("ipmitool", tmp_path, monkeypatch)

    async def rounds() -> list[dict[str, float]]:
        found: list[dict[str, float]] = []
        for celsius in ("23", "31"):
            (real.directory / "inlet").write_text(celsius)
            async with asyncio.timeout(10):
                bmc = bmc_of(real)
                while found == [] or found[-1].get("bmc.temp.inlet") != float(celsius):
                    paces.clear()
                    found.append(numbers(await measured(bmc)))
            add_event(real)
        paces.clear()
        found.append(numbers(await measured(bmc_of(real))))
        found.append(numbers(await measured(bmc_of(real))))
        return found

    *found, due, not_due = asyncio.run(rounds())

    same = {"bmc.fan.speed[Fan_1]": 4_000.0, "bmc.state[Fan_1]": 0.0, "sel.uncorrected": 0.0}
    first = next(one for one in found if one.get("bmc.temp.inlet") == 23.0)
    assert first.items() >= {**same, "bmc.state[Inlet_Temp]": 0.0, "sel.corrected": 0.0}.items()
    assert due.items() >= {**same, "sel.corrected": 2.0, "sel.events[Memory]": 2.0}.items()
    assert "bmc.temp.cpu[CPU_Temp]" not in due
    assert not_due == {}
    # Descriptions are read once; nothing is listed of a log that has not changed.
    assert sum(" sdr dump " in line for line in heard.read_text().splitlines()) == 1


@pytest.mark.net
@pytest.mark.slow
def test_a_bmc_that_is_asked_something_else_is_not_asked_for_its_sensors(real: Machine) -> None:
    async def both() -> Measured:
        bmc = bmc_of(real)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(bmc.status())
            await asyncio.sleep(0)
            assert bmc.is_asked
            return await measured(bmc)

    assert asyncio.run(both()) == {}
