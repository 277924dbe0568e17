"""The analog sensors of a BMC (IPMI 2.0, chapters 33 and 43) from ipmitool, as numbers."""

import csv
import re
from collections.abc import Iterator
from typing import Final

from haptera.modules.bmc_sensors import BmcSensor, SensorState, cpu, family_of, inlet
from haptera.sdk import Reading

# Of `sdr elist full` with -c and -v: name, value, unit, state, entity, …
_COLUMNS: Final = 5
_UNITS: Final = {"degrees C": "°C", "RPM": "rpm", "Watts": "W", "percent": "%", "unspecified": ""}
# Lower and upper, non-critical, critical and non-recoverable (table 35-15).
_STATES: Final = {
    "ok": SensorState.OK,
    **dict.fromkeys(("nc", "lnc", "unc"), SensorState.WARNING),
    **dict.fromkeys(("cr", "lcr", "ucr"), SensorState.CRITICAL),
    **dict.fromkeys(("nr", "lnr", "unr"), SensorState.FATAL),
}
# Entities (table 43-13): a processor, and the two that are where air comes in.
_FAMILIES: Final[dict[str, Reading]] = {"3": cpu, "55": inlet, "64": inlet}


def sensors_of(printed: str) -> Iterator[BmcSensor]:
    r"""The sensors in what `sdr elist full` prints; without a reading, `value` is None.

    >>> [one.value for one in sensors_of("Fan,4000,RPM,ok,7.1,Board\nTemp,,,ns,3.1,CPU\n")]
    [4000.0, None]
    """
    # Nothing is quoted: by a name that begins with a quote, a sensor would hide all after it.
    for row in csv.reader(printed.splitlines(), quoting=csv.QUOTE_NONE):
        if len(row) < _COLUMNS:
            continue
        name, value, unit, state, entity = (one.strip() for one in row[:_COLUMNS])
        number = _number(value)
        shown, number = _in_celsius(unit, number)
        yield BmcSensor(
            name,
            shown,
            number,
            None if number is None else _STATES.get(state),
            entity,
            _family(name, shown, entity),
        )


def _family(name: str, unit: str, entity: str) -> Reading | None:
    by_name = family_of(name, unit)
    if unit != "°C" or by_name is inlet:
        return by_name
    return _FAMILIES.get(entity.partition(".")[0], by_name)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"-?[0-9]{1,15}(?:\.[0-9]{1,9})?", text) else None


def _in_celsius(unit: str, value: float | None) -> tuple[str, float | None]:
    """A unit by our name, and the value in it."""
    match unit:
        case "degrees F":
            return "°C", None if value is None else (value - 32) / 1.8
        case "degrees K":
            return "°C", None if value is None else value - 273.15
        case _:
            return _UNITS.get(unit, unit), value
