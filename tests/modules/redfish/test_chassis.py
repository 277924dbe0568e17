"""Sensors of Redfish services, in the shapes of several makers."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from haptera.modules import bmc_sensors
from haptera.modules.bmc_sensors import measure, paces
from haptera.modules.redfish import module
from haptera.modules.redfish.chassis import LISTED_MAX, SENSORS_MAX, sensors_of
from haptera.modules.redfish.documents import Document
from haptera.modules.redfish.resources import PAGES_MAX
from tests.modules.redfish.fake_service import SYSTEM, SYSTEMS, Answers, Asked, Told, fake_service
from tests.modules.test_sensors import numbers_of

CHASSIS: Final = "/redfish/v1/Chassis/1"
ENABLED: Final = {"State": "Enabled", "Health": "OK"}
LINKED: Final = {"Links": {"Chassis": [{"@odata.id": CHASSIS}]}}

# Both of the first generation: one names its fans in percent, and writes zero for what is absent.
PERCENT: Final = {
    CHASSIS: {
        "Thermal": {"@odata.id": f"{CHASSIS}/Thermal"},
        "Power": {"@odata.id": f"{CHASSIS}/Power/"},
    },
    f"{CHASSIS}/Thermal": {
        "Temperatures": [
            {"Name": "01-Inlet Ambient", "ReadingCelsius": 21, "PhysicalContext": "Intake",
             "Status": ENABLED, "MemberId": "0"},
            {"Name": "02-CPU 1", "ReadingCelsius": 40, "PhysicalContext": "CPU",
             "Status": {"State": "Enabled", "Health": "Critical"}, "MemberId": "1"},
            {"Name": "03-CPU 2", "ReadingCelsius": 0, "PhysicalContext": "CPU",
             "Status": {"State": "Absent"}, "MemberId": "2"},
        ],
        "Fans": [{"FanName": "Fan 1", "CurrentReading": 19, "Units": "Percent", "Status": ENABLED}],
    },
    f"{CHASSIS}/Power/": {
        "PowerControl": [{"PowerConsumedWatts": 180, "MemberId": "0"}],
        "PowerSupplies": [{"Name": "PS 1", "LastPowerOutputWatts": 90, "Status": ENABLED}],
    },
}  # fmt: skip
# The other has turns, and null for what it does not measure.
TURNS: Final = {
    CHASSIS: {"Thermal": {"@odata.id": f"{CHASSIS}/Thermal"}},
    f"{CHASSIS}/Thermal": {
        "Temperatures": [
            {"Name": "System Board Inlet Temp", "ReadingCelsius": "23", "Status": ENABLED},
            {"Name": "Temp", "MemberId": "a", "ReadingCelsius": 44, "PhysicalContext": "CPU"},
            {"Name": "Temp", "MemberId": "b", "ReadingCelsius": 46, "PhysicalContext": "CPU"},
            {"Name": "PCH Temp", "ReadingCelsius": None, "Status": ENABLED},
        ],
        "Fans": [{"Name": "Fan 1A", "Reading": 7440, "ReadingUnits": "RPM", "Status": ENABLED}],
    },
}
SENSOR: Final = f"{CHASSIS}/Sensors/"
# The second generation: a resource for each, in their list where the service can do that.
INLET: Final = {"@odata.id": f"{SENSOR}i", "Id": "i", "Name": "Inlet", "Reading": 24.5,
                "ReadingUnits": "Cel", "PhysicalContext": "Intake", "Status": ENABLED}  # fmt: skip
WATTS: Final = {"@odata.id": f"{SENSOR}w", "Id": "w", "Name": "Total", "Reading": 410,
                "ReadingUnits": "W", "Status": ENABLED}  # fmt: skip
ONE_EACH: Final = {
    CHASSIS: {"Sensors": {"@odata.id": f"{CHASSIS}/Sensors"}},
    f"{CHASSIS}/Sensors": {"Members": [{"@odata.id": f"{SENSOR}i"}, {"@odata.id": f"{SENSOR}w"}]},
    f"{SENSOR}i": INLET,
    f"{SENSOR}w": WATTS,
}
EXPANDED: Final = {
    CHASSIS: {"Sensors": {"@odata.id": f"{CHASSIS}/Sensors"}},
    f"{CHASSIS}/Sensors?$expand=.($levels=1)": {"Members": [INLET, WATTS]},
}
SUMMARIES: Final = {
    CHASSIS: {
        "ThermalSubsystem": {"@odata.id": f"{CHASSIS}/ThermalSubsystem"},
        "EnvironmentMetrics": {"@odata.id": f"{CHASSIS}/EnvironmentMetrics"},
    },
    f"{CHASSIS}/ThermalSubsystem": {"ThermalMetrics": {"@odata.id": f"{CHASSIS}/T"}},
    f"{CHASSIS}/T": {
        "TemperatureReadingsCelsius": [{"DeviceName": "CPU0", "Reading": 51}],
        "TemperatureSummaryCelsius": {"Intake": {"Reading": 22}},
    },
    f"{CHASSIS}/EnvironmentMetrics": {"PowerWatts": {"Reading": 300}},
}
# The first generation without watts, which only a sensor of the second has; a fan by its place.
HALVES: Final = {
    CHASSIS: {
        "Thermal": {"@odata.id": f"{CHASSIS}/Thermal"},
        "Power": {"@odata.id": f"{CHASSIS}/Power"},
        "Sensors": {"@odata.id": f"{CHASSIS}/Sensors"},
    },
    f"{CHASSIS}/Thermal": {
        "Temperatures": [{"Name": "MB_CPU_0_TEMP", "ReadingCelsius": 38.5}],
        "Fans": [{"Name": "PWM 3", "Reading": 31, "ReadingUnits": "Percent"}],
    },
    f"{CHASSIS}/Power": {"PowerControl": [{"Name": "Control", "PowerLimit": {}}]},
    f"{CHASSIS}/Sensors?$expand=.($levels=1)": {"Members": [INLET, WATTS]},
}
# Sensors without watts, which only a summary has.
THIRDS: Final = {
    CHASSIS: {
        "Sensors": {"@odata.id": f"{CHASSIS}/Sensors"},
        "EnvironmentMetrics": {"@odata.id": f"{CHASSIS}/E"},
        "ThermalSubsystem": {"@odata.id": f"{CHASSIS}/ThermalSubsystem"},
    },
    f"{CHASSIS}/Sensors?$expand=.($levels=1)": {"Members": [INLET]},
    f"{CHASSIS}/E": {"PowerWatts": {"Reading": 290}},
    f"{CHASSIS}/ThermalSubsystem": {"ThermalMetrics": {"@odata.id": f"{CHASSIS}/T"}},
    f"{CHASSIS}/T": {"TemperatureReadingsCelsius": [{"DeviceName": "CPU0", "Reading": 51}]},
}
# Supplies that nothing tells from each other.
ALIKE: Final = {
    CHASSIS: {"Power": {"@odata.id": f"{CHASSIS}/Power"}},
    f"{CHASSIS}/Power": {
        "PowerSupplies": [
            {"Name": "ServerSupply", "LastPowerOutputWatts": 81},
            {"Name": "ServerSupply", "LastPowerOutputWatts": 79},
        ]
    },
}
# Degrees below a limit among the temperatures, and a part that is named after its processor.
RELATIVE: Final = {
    CHASSIS: {"Thermal": {"@odata.id": f"{CHASSIS}/Thermal"}},
    f"{CHASSIS}/Thermal": {
        "Temperatures": [
            {"Name": "CPU2 DTS", "ReadingCelsius": -41, "PhysicalContext": "CPU"},
            {"Name": "CPU2 Margin", "ReadingCelsius": 33, "PhysicalContext": "CPU"},
            {"Name": "CPU2 VRD Temp", "ReadingCelsius": 36},
            {"Name": "Proc 2 top", "ReadingCelsius": 37, "PhysicalContext": "VoltageRegulator"},
        ],
    },
}
NONSENSE: Final = {
    CHASSIS: {"Thermal": {"@odata.id": f"{CHASSIS}/Thermal"}},
    f"{CHASSIS}/Thermal": {
        "Temperatures": [None, "hot", {"Name": 7, "ReadingCelsius": True}],
        "Fans": "none",
    },
}


def serving(resources: Mapping[str, Any]) -> Answers:
    """A service that has these."""

    def answers(asked: Asked) -> Told:
        return Told(body=resources[asked.path]) if asked.path in resources else Told(404)

    return answers


def read(service: Mapping[str, Any]) -> tuple[dict[str, float], list[str]]:
    """The numbers of a service with these resources, and what was asked for."""
    asked: list[str] = []

    def one(path: str) -> Document | None:
        asked.append(path)
        return Document(service[path]) if path in service else None

    found = bmc_sensors.measured(sensors_of(one, [CHASSIS]))
    return numbers_of(module, found), asked


@pytest.mark.parametrize(
    ("service", "numbers"),
    [
        (
            PERCENT,
            {
                "bmc.temp.inlet": 21, "bmc.temp.cpu[02-CPU_1]": 40, "bmc.fan.percent[Fan_1]": 19,
                "bmc.power[0]": 180, "bmc.power[PS_1]": 90, "bmc.state[01-Inlet_Ambient]": 0,
                "bmc.state[02-CPU_1]": 2, "bmc.state[Fan_1]": 0, "bmc.state[PS_1]": 0,
            },
        ),
        (
            TURNS,
            {
                "bmc.temp.inlet": 23, "bmc.temp.cpu[Temp@a]": 44, "bmc.temp.cpu[Temp@b]": 46,
                "bmc.fan.speed[Fan_1A]": 7440, "bmc.state[System_Board_Inlet_Temp]": 0,
                "bmc.state[Fan_1A]": 0,
            },
        ),
        *(
            (service, {"bmc.temp.inlet": 24.5, "bmc.power[Total]": 410, "bmc.state[Inlet]": 0,
                       "bmc.state[Total]": 0})
            for service in (ONE_EACH, EXPANDED)
        ),
        (SUMMARIES, {"bmc.temp.inlet": 22, "bmc.temp.cpu[CPU0]": 51, "bmc.power[Power]": 300}),
        (
            HALVES,
            {"bmc.temp.cpu[MB_CPU_0_TEMP]": 38.5, "bmc.fan.percent[PWM_3]": 31,
             "bmc.power[Total]": 410, "bmc.state[Total]": 0},
        ),
        (THIRDS, {"bmc.temp.inlet": 24.5, "bmc.state[Inlet]": 0, "bmc.power[Power]": 290}),
        (ALIKE, {"bmc.power[ServerSupply]": 81, "bmc.power[ServerSupply#2]": 79}),
        (RELATIVE, {"bmc.temp.other[CPU2_VRD_Temp]": 36, "bmc.temp.other[Proc_2_top]": 37}),
        ({}, {}),
        (NONSENSE, {}),
    ],
    ids=["percent", "turns", "one each", "expanded", "summaries", "halves", "thirds", "alike",
         "relative", "nothing", "nonsense"],
)  # fmt: skip
def test_each_shape_is_read_and_what_is_not_there_is_no_number(
    service: Mapping[str, Any], numbers: dict[str, float]
) -> None:
    assert read(service)[0] == numbers


def test_of_very_many_sensors_no_more_are_asked_for_than_the_limit() -> None:
    links = [{"@odata.id": f"{SENSOR}{number}"} for number in range(500)]
    _, asked = read({**ONE_EACH, f"{CHASSIS}/Sensors": {"Members": links}})
    assert len(asked) <= SENSORS_MAX + 3


@pytest.mark.net
def test_a_service_is_read_in_one_connection_and_as_often_as_is_set(tmp_path: Path) -> None:
    resources: dict[str, Any] = {
        SYSTEMS: {"Members": [{"@odata.id": SYSTEM}]},
        SYSTEM: {"PowerState": "On", **LINKED},
        **PERCENT,
    }

    async def rounds() -> tuple[dict[str, float], dict[str, float]]:
        bmc = service.bmc()
        first = await measure(bmc, bmc.sensors)
        return numbers_of(module, first), numbers_of(module, await measure(bmc, bmc.sensors))

    paces.clear()
    with fake_service(tmp_path, serving(resources)) as service:
        due, not_due = asyncio.run(rounds())

    assert due["bmc.temp.inlet"] == 21
    assert not_due == {}
    assert service.lines.count(f"GET {CHASSIS}/Thermal") == 1


LISTED: Final = "/redfish/v1/Chassis"
BOARD: Final = "/redfish/v1/Chassis/board"
ANOTHER: Final = "/redfish/v1/Chassis/another"


@pytest.mark.net
@pytest.mark.parametrize("linked", [[BOARD], []], ids=["the board only", "none"])
def test_a_system_is_in_the_chassis_that_say_so_too(tmp_path: Path, linked: list[str]) -> None:
    """Some systems link to the board of their BMC only, some to no chassis."""

    def chassis(system: str) -> dict[str, Any]:
        return {"Links": {"ComputerSystems": [{"@odata.id": system}]}}

    thermal = {"Temperatures": [{"Name": "Outlet", "ReadingCelsius": 27}]}
    resources: dict[str, Any] = {
        SYSTEMS: {"Members": [{"@odata.id": SYSTEM}]},
        SYSTEM: {"PowerState": "On", "Links": {"Chassis": [{"@odata.id": one} for one in linked]}},
        "/redfish/v1/Chassis": {
            "Members": [{"@odata.id": one} for one in (f"{BOARD}/", ANOTHER, CHASSIS)]
        },
        BOARD: {**chassis(SYSTEM), "Power": {"@odata.id": f"{BOARD}/Power"}},
        f"{BOARD}/Power": {"PowerControl": [{"Name": "Board", "PowerConsumedWatts": 9}]},
        ANOTHER: {**chassis(f"{SYSTEM}1"), "Thermal": {"@odata.id": f"{ANOTHER}/Thermal"}},
        f"{ANOTHER}/Thermal": thermal,
        CHASSIS: {**chassis(f"{SYSTEM}/"), "Thermal": {"@odata.id": f"{CHASSIS}/Thermal"}},
        f"{CHASSIS}/Thermal": thermal,
    }

    with fake_service(tmp_path, serving(resources)) as service:
        for _ in range(2):
            found = numbers_of(module, asyncio.run(service.bmc().sensors()))
            assert found == {"bmc.power[Board]": 9, "bmc.temp.other[Outlet]": 27}
        assert service.lines.count(f"GET {ANOTHER}") == 1
        assert f"GET {ANOTHER}/Thermal" not in service.lines


def in_chassis(*paths: str) -> dict[str, Any]:
    """A service whose system is in these chassis, each with one temperature; it names none."""
    found: dict[str, Any] = {
        SYSTEMS: {"Members": [{"@odata.id": SYSTEM}]},
        SYSTEM: {"PowerState": "On"},
        LISTED: {"Members": [{"@odata.id": one} for one in paths]},
    }
    for number, one in enumerate(paths):
        heat = {"Temperatures": [{"Name": f"Outlet{number}", "ReadingCelsius": 27}]}
        links = {"ComputerSystems": [{"@odata.id": SYSTEM}]}
        found[one] = {"Links": links, "Thermal": {"@odata.id": f"{one}/Thermal"}}
        found[f"{one}/Thermal"] = heat
    return found


@pytest.mark.net
def test_a_chassis_that_could_not_be_read_is_asked_again_after_the_sensors_of_the_others(
    tmp_path: Path,
) -> None:
    resources = in_chassis(ANOTHER, CHASSIS)
    busy = resources.pop(ANOTHER)
    with fake_service(tmp_path, serving(resources)) as service:
        first = asyncio.run(service.bmc().sensors())
        assert numbers_of(module, first) == {"bmc.temp.other[Outlet1]": 27}
        resources[ANOTHER] = busy
        began = len(service.lines)
        numbers = {f"bmc.temp.other[Outlet{number}]": 27.0 for number in (0, 1)}
        for _ in range(2):
            assert numbers_of(module, asyncio.run(service.bmc().sensors())) == numbers
        asked = service.lines[began:]
        assert asked.index(f"GET {CHASSIS}/Thermal") < asked.index(f"GET {ANOTHER}")
        assert service.lines.count(f"GET {LISTED}") == 1


@pytest.mark.net
@pytest.mark.parametrize(
    ("each", "is_endless"), [(100, False), (1, True)], ids=["10,000", "without end"]
)
def test_of_very_many_chassis_no_more_are_asked_than_the_limit(
    tmp_path: Path, each: int, is_endless: bool
) -> None:
    def answers(asked: Asked) -> Told:
        page, _, number = asked.path.partition("?$skip=")
        if page != LISTED:
            return Told(body=others.get(page, {"Id": "one"}))
        at = int(number or 0)
        paths = [{"@odata.id": f"{LISTED}/{at + one}"} for one in range(each)]
        more = {"Members@odata.nextLink": f"{LISTED}?$skip={0 if is_endless else at + each}"}
        return Told(body={"Members": paths, **(more if at < 10_000 else {})})

    others = {SYSTEMS: {"Members": [{"@odata.id": SYSTEM}]}, SYSTEM: {"PowerState": "On"}}
    with fake_service(tmp_path, answers) as service:
        assert asyncio.run(service.bmc().sensors()) == {}
        chassis = [one for one in service.lines if one.startswith(f"GET {LISTED}/")]
        assert len(chassis) == len({*chassis}) <= LISTED_MAX
        assert len(service.lines) - len(chassis) <= (5 if each == 100 else 4 + PAGES_MAX)


@pytest.mark.net
@pytest.mark.parametrize(("others", "firmware"), [([], "4.20"), (["/redfish/v1/Managers/2"], None)])
def test_who_manages_a_system_that_does_not_say_is_the_only_one_there(
    tmp_path: Path, others: list[str], firmware: str | None
) -> None:
    manager = "/redfish/v1/Managers/1"
    resources: dict[str, Any] = {
        SYSTEMS: {"Members": [{"@odata.id": SYSTEM}]},
        SYSTEM: {"PowerState": "On"},
        "/redfish/v1/Managers": {"Members": [{"@odata.id": one} for one in (manager, *others)]},
        manager: {"FirmwareVersion": "4.20"},
    }

    with fake_service(tmp_path, serving(resources)) as service:
        assert asyncio.run(service.bmc().survey()).firmware == firmware
