"""The sensors of the chassis that a system is in, of both generations of the schema (DSP2046).

Thermal and Power have all of their sensors in one answer, and most services still have them; what
is not there is in ThermalSubsystem, EnvironmentMetrics and one resource for each sensor.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from haptera.modules.bmc_sensors import (
    BmcSensor,
    SensorState,
    cpu,
    family_of,
    fan_percent,
    inlet,
    other,
)
from haptera.modules.redfish.documents import Document, path_of
from haptera.modules.redfish.sessions import ROOT_PATH
from haptera.sdk import Reading

# What is there at a path; None where it cannot be read, or there is no time left.
Read = Callable[[str], Document | None]
# The same, at the link that a member of a document has.
Follow = Callable[[Document, str], Document | None]

CHASSIS_MAX: Final = 4
# Racks of accelerators list one for each part.
LISTED_MAX: Final = 64
# Where a service does not put them into their list, each is one more request.
SENSORS_MAX: Final = 64
# States (DSP0268, Status.State) in which a number is none, though some services write zero.
_NOT_THERE: Final = {"Absent", "Disabled", "UnavailableOffline", "Deferring", "StandbyOffline"}
_STATES: Final = {
    "OK": SensorState.OK,
    "Warning": SensorState.WARNING,
    "Critical": SensorState.CRITICAL,
}
_UNITS: Final = {"Cel": "°C", "RPM": "rpm", "{rev}/min": "rpm", "W": "W", "%": "%", "Percent": "%"}
# Who has a number in one of these units has all that there are of them.
_QUANTITIES: Final = [{"°C", "rpm", "%"}, {"W"}]
_FAN: Final = "Fan"
_PLACES: Final = {"Intake": inlet, "CPU": cpu, "Memory": other, "VoltageRegulator": other}


def expanded(path: str) -> str:
    """The path of the same list with its members in it (DSP0266, *$expand*).

    >>> expanded("/redfish/v1/Chassis/1/Sensors"), expanded("/Entries?$skip=50")
    ('/redfish/v1/Chassis/1/Sensors?$expand=.($levels=1)', '/Entries?$skip=50&$expand=.($levels=1)')
    """
    return f"{path}{'&' if '?' in path else '?'}$expand=.($levels=1)"


def places_of(own: Sequence[str], listed: Iterable[str]) -> dict[str, bool | None]:
    """The paths of the chassis that a system names, and of those listed, which are to be asked."""
    places: dict[str, bool | None] = {one.rstrip("/"): True for one in own[:CHASSIS_MAX]}
    for one in listed:
        places.setdefault(one.rstrip("/"))
    return places


def chassis_of(read: Read, system_path: str, places: dict[str, bool | None]) -> Iterator[str]:
    """The paths among these of the chassis that a system is in; those that are known come first.

    Some systems name only the board that their BMC is on, and some no chassis at all: so each
    chassis is asked, once. None in `places` is one that could not be read yet.
    """
    yield from [path for path, is_ours in places.items() if is_ours]
    for path in [path for path, is_ours in places.items() if is_ours is None]:
        if (chassis := read(path)) is not None:
            held = [path_of(one, path) for one in chassis.links("Links", "ComputerSystems")]
            places[path] = system_path.rstrip("/") in (one.rstrip("/") for one in held)
            if places[path]:
                yield path


def sensors_of(read: Read, chassis: Iterable[str]) -> Iterator[BmcSensor]:
    """All sensors of the chassis at these paths, of the first of them."""
    for path in islice(chassis, CHASSIS_MAX):
        one = read(path)
        if one is not None:
            yield from _of_chassis(partial(_linked, read), one)


def _of_chassis(follow: Follow, chassis: Document) -> Iterator[BmcSensor]:
    """Of each source what those before it have no number of."""
    lacking = _QUANTITIES
    for source in (_old, _each, _summaries):
        there = [unit for units in _QUANTITIES if units not in lacking for unit in units]
        found = [one for one in source(follow, chassis) if one.unit not in there]
        yield from found
        known = {one.unit for one in found if one.value is not None}
        lacking = [units for units in lacking if not units & known]
        if not lacking:
            return


def _old(follow: Follow, chassis: Document) -> Iterator[BmcSensor]:
    yield from _heat(follow(chassis, "Thermal") or Document({}))
    yield from _watts(follow(chassis, "Power") or Document({}))


def _heat(thermal: Document) -> Iterator[BmcSensor]:
    for one in thermal.documents("Temperatures"):
        yield _sensor(one, "°C", "ReadingCelsius")
    for one in thermal.documents("Fans"):
        # The first of these schemas had other names for a fan's.
        unit = one.text("ReadingUnits") or one.text("Units") or "RPM"
        fan = Document({**one.members, "PhysicalContext": _FAN})
        yield _sensor(fan, _UNITS.get(unit, unit), "Reading", "CurrentReading")


def _watts(power: Document) -> Iterator[BmcSensor]:
    for one in power.documents("PowerControl"):
        yield _sensor(one, "W", "PowerConsumedWatts")
    for one in power.documents("PowerSupplies"):
        yield _sensor(one, "W", "PowerOutputWatts", "LastPowerOutputWatts")


def _each(follow: Follow, chassis: Document) -> Iterator[BmcSensor]:
    """By the list of sensors, with one resource for each."""
    listed = follow(chassis, "Sensors")
    for one in () if listed is None else listed.documents("Members")[:SENSORS_MAX]:
        whole = one if "Reading" in one.members else follow(Document({"it": one.members}), "it")
        if whole is not None:
            unit = whole.text("ReadingUnits") or ""
            yield _sensor(whole, _UNITS.get(unit, unit), "Reading")


def _summaries(follow: Follow, chassis: Document) -> Iterator[BmcSensor]:
    subsystem = follow(chassis, "ThermalSubsystem")
    metrics = None if subsystem is None else follow(subsystem, "ThermalMetrics")
    yield from _of_metrics(metrics or Document({}))
    environment = follow(chassis, "EnvironmentMetrics") or Document({})
    watts = environment.document("PowerWatts")
    if watts is not None:
        yield _sensor(Document({"Name": "Power", **watts.members}), "W", "Reading")


def _of_metrics(metrics: Document) -> Iterable[BmcSensor]:
    for one in metrics.documents("TemperatureReadingsCelsius"):
        named = Document({"Name": one.text("DeviceName"), **one.members})
        yield _sensor(named, "°C", "Reading")
    intake = metrics.document("TemperatureSummaryCelsius", "Intake")
    if intake is not None:
        yield _sensor(Document({"Name": "Inlet", **intake.members}), "°C", "Reading")


def _sensor(one: Document, unit: str, *names: str) -> BmcSensor:
    name = one.text("Name") or one.text("FanName") or one.text("MemberId") or "unnamed"
    is_there = one.text("Status", "State") not in _NOT_THERE
    found = (_number(one, each) for each in names)
    value = next((each for each in found if each is not None), None) if is_there else None
    health = one.text("Status", "Health")
    return BmcSensor(
        name,
        unit,
        value,
        None if value is None or health is None else _STATES.get(health),
        one.text("MemberId") or one.text("Id") or "",
        _family(one, name, unit),
    )


def _family(one: Document, name: str, unit: str) -> Reading | None:
    by_name = family_of(name, unit)
    place = one.text("PhysicalContext") or ""
    if unit == "%" and place == _FAN:
        return fan_percent
    if unit != "°C" or by_name in (inlet, None):
        return by_name
    return _PLACES.get(place, by_name)


def _number(one: Document, name: str) -> float | None:
    """A number; some services write it as a text."""
    found: Any = one.members.get(name)
    if isinstance(found, str):
        try:
            found = float(found)
        except ValueError:
            return None
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None


def _linked(read: Read, document: Document, name: str) -> Document | None:
    """The resource that a member links to; a list of sensors expanded, where the service can."""
    place = document.link(name)
    if place is None:
        return None
    path = path_of(place, ROOT_PATH)
    whole = read(expanded(path)) if name == "Sensors" else None
    return whole or read(path)
