"""The sensors of the chassis that a system is in, of both generations of the schema (DSP2046).

Thermal and Power have all of their sensors in one answer, and most services still have them; where
they are gone, it is ThermalSubsystem, EnvironmentMetrics and one resource for each sensor.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from haptera.modules.bmc_sensors import BmcSensor, SensorState, cpu, family_of, inlet
from haptera.modules.redfish.documents import Document, path_of
from haptera.modules.redfish.sessions import ROOT_PATH
from haptera.sdk import Reading

# What is there at a path; None where it cannot be read, or there is no time left.
Read = Callable[[str], Document | None]
# The same, at the link that a member of a document has.
Follow = Callable[[Document, str], Document | None]

CHASSIS_MAX: Final = 4
# Where a service does not put them into their list, each is one more request.
SENSORS_MAX: Final = 64
_EXPANDED: Final = "?$expand=.($levels=1)"
# States (DSP0268, Status.State) in which a number is none, though some services write zero.
_NOT_THERE: Final = {"Absent", "Disabled", "UnavailableOffline", "Deferring", "StandbyOffline"}
_STATES: Final = {
    "OK": SensorState.OK,
    "Warning": SensorState.WARNING,
    "Critical": SensorState.CRITICAL,
}
_UNITS: Final = {"Cel": "°C", "RPM": "rpm", "{rev}/min": "rpm", "W": "W", "%": "%", "Percent": "%"}
_PLACES: Final[dict[str, Reading]] = {"Intake": inlet, "CPU": cpu}


def sensors_of(read: Read, system: Document, system_path: str) -> Iterator[BmcSensor]:
    """All sensors of the chassis of a system that was read at this path."""
    for link in system.links("Links", "Chassis")[:CHASSIS_MAX]:
        chassis = read(path_of(link, system_path))
        if chassis is not None:
            yield from _of_chassis(partial(_linked, read), chassis)


def _of_chassis(follow: Follow, chassis: Document) -> Iterator[BmcSensor]:
    thermal, power = follow(chassis, "Thermal"), follow(chassis, "Power")
    if thermal is not None or power is not None:
        yield from _old(thermal or Document({}), power or Document({}))
        return
    yield from _each(follow, chassis)


def _old(thermal: Document, power: Document) -> Iterator[BmcSensor]:
    for one in thermal.documents("Temperatures"):
        yield _sensor(one, "°C", "ReadingCelsius")
    for one in thermal.documents("Fans"):
        # The first of these schemas had other names for a fan's.
        unit = one.text("ReadingUnits") or one.text("Units") or "RPM"
        yield _sensor(one, _UNITS.get(unit, unit), "Reading", "CurrentReading")
    for one in power.documents("PowerControl"):
        yield _sensor(one, "W", "PowerConsumedWatts")
    for one in power.documents("PowerSupplies"):
        yield _sensor(one, "W", "PowerOutputWatts", "LastPowerOutputWatts")


def _each(follow: Follow, chassis: Document) -> Iterator[BmcSensor]:
    """By the list of sensors; where there is none, by what has a summary of them."""
    listed = follow(chassis, "Sensors")
    members = () if listed is None else listed.documents("Members")[:SENSORS_MAX]
    for one in members:
        whole = one if "Reading" in one.members else follow(Document({"it": one.members}), "it")
        if whole is not None:
            unit = whole.text("ReadingUnits") or ""
            yield _sensor(whole, _UNITS.get(unit, unit), "Reading")
    if not members:
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
    if unit != "°C" or by_name is inlet:
        return by_name
    return _PLACES.get(one.text("PhysicalContext") or "", by_name)


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
    expanded = read(path + _EXPANDED) if name == "Sensors" else None
    return expanded or read(path)
