"""The numbers of a machine that its BMC measures from outside, in whatever language it is asked."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol

from haptera.sdk import Measured, Reading, Series

# The share of a BMC's time that readings of its sensors may take: one that is slow is asked less.
SHARE_MAX: Final = 0.2
ROUND_S_MAX: Final = 60
# Rounds of a sampler are no more exact than this.
BEAT_S: Final = 5.0
SENSORS_EVERY_S_MAX: Final = 3_600

inlet = Reading("node", "bmc.temp.inlet", unit="°C", low=-60, high=150)
cpu = Reading("node", "bmc.temp.cpu", unit="°C", items_max=32, low=-60, high=200)
other = Reading("node", "bmc.temp.other", unit="°C", items_max=64, low=-60, high=250)
fan = Reading("node", "bmc.fan.speed", unit="rpm", items_max=32, low=0, high=100_000)
fan_percent = Reading("node", "bmc.fan.percent", unit="%", items_max=32, low=0, high=200)
power = Reading("node", "bmc.power", unit="W", items_max=16, low=0, high=200_000)
# BMCs of one make disagree with all others on what a sensor's state is; this is their own verdict.
state = Reading("node", "bmc.state", items_max=64, low=0, high=3)
# Events that were added to its logs: over IPMI by the type of sensor, by Redfish by severity.
events = Reading("node", "sel.events", items_max=48, low=0)

READINGS: Final = (inlet, cpu, other, fan, fan_percent, power, state)

_INLET: Final = re.compile(r"inlet|ambient|intake|front panel", re.IGNORECASE)
# Where a word begins: makers join them by spaces and by underscores.
_FAN: Final = re.compile(r"(?<![a-z])fan", re.IGNORECASE)
_CPU: Final = re.compile(r"(?<![a-z])(?:cpu|proc)", re.IGNORECASE)
# Parts beside a processor that are named after it.
_BESIDE: Final = re.compile(r"dimm|mem|(?<![a-z])v(?:r|ddq|core|cc)", re.IGNORECASE)
# How far a temperature is below its limit, in degrees: no temperature, though listed with them.
_MARGIN: Final = re.compile(r"margin|(?<![a-z])dts(?![a-z])", re.IGNORECASE)


class SensorState(IntEnum):
    """A reading beside the thresholds that the BMC itself has for it."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    FATAL = 3


@dataclass(frozen=True, slots=True)
class BmcSensor:
    """One sensor; `place` tells it from others of its name. None is what the BMC does not say."""

    name: str
    unit: str
    value: float | None
    state: SensorState | None = None
    place: str = ""
    # From what the BMC says of its place, not of its name; None where it says nothing.
    family: Reading | None = None


def measured(sensors: Iterable[BmcSensor]) -> Measured:
    """The numbers of all sensors that have one; of several inlets the hottest."""
    there = [one for one in sensors if one.value is not None]
    names = Counter(one.name for one in there)
    items = Counter[str]()
    found: dict[Reading | Series, float | None] = {}
    inlets: list[float] = []
    for one in there:
        item = f"{one.name}@{one.place}" if one.place and names[one.name] > 1 else one.name
        items[item] += 1
        if items[item] > 1:  # Nothing that the BMC says tells it from another.
            item = f"{item}#{items[item]}"
        if one.state is not None:
            found[state.series(item)] = one.state
        family = one.family or family_of(one.name, one.unit)
        if family is inlet:
            inlets.append(one.value or 0.0)
        elif family is not None:
            found[family.series(item)] = one.value
    if inlets:
        found[inlet] = max(inlets)
    return found


def family_of(name: str, unit: str) -> Reading | None:
    """The reading that a sensor belongs to by its name and unit; None where there is none.

    >>> family_of("Inlet Temp", "°C") is inlet, family_of("12V Rail", "V")
    (True, None)
    >>> family_of("MB_CPU_0_Temp", "°C") is cpu, family_of("SYS_FAN_1", "%") is fan_percent
    (True, True)
    >>> family_of("CPU1 VRD Temp", "°C") is other, family_of("CPU1 DTS", "°C")
    (True, None)
    """
    if unit == "%":
        return fan_percent if _FAN.search(name) else None
    if unit != "°C":
        return {"rpm": fan, "W": power}.get(unit)
    if _MARGIN.search(name):
        return None
    if _INLET.search(name):
        return inlet
    return cpu if _CPU.search(name) and not _BESIDE.search(name) else other


class SensorPace:
    """The times at which the sensors of one BMC may be read: by interval, and by what it took."""

    def __init__(self) -> None:
        self._next_at = 0.0

    def is_due(self, now: float) -> bool:
        return now >= self._next_at

    def spent(self, began: float, ended: float, every_s: float) -> None:
        """Note a reading, from when to when: the BMC then rests.

        >>> pace = SensorPace()
        >>> pace.spent(100.0, 112.0, every_s=30)
        >>> pace.is_due(159.0), pace.is_due(160.0)
        (False, True)
        """
        rest_s = (ended - began) * (1 / SHARE_MAX - 1)
        self._next_at = max(began + every_s - BEAT_S, ended + rest_s)


paces: Final[dict[str, SensorPace]] = {}


class MeasuredBmc(Protocol):
    """A BMC that has sensors, in whatever language."""

    @property
    def address(self) -> str: ...
    @property
    def is_asked(self) -> bool:
        """True while it is asked something."""

    sensors_every_s: float


async def measure(bmc: MeasuredBmc, read: Callable[[], Awaitable[Measured]]) -> Measured:
    """The numbers of one round; none where it is not due, or the BMC is asked something else."""
    now = asyncio.get_running_loop().time
    pace = paces.setdefault(bmc.address, SensorPace())
    if not pace.is_due(now()) or bmc.is_asked:
        return {}
    began = now()
    try:
        return await read()
    finally:
        pace.spent(began, now(), bmc.sensors_every_s)


def check_every(seconds: float) -> None:
    """See that a setting `sensors_every_s` is in its limits.

    Raises:
        ValueError: it is not.
    """
    if not 10 <= seconds <= SENSORS_EVERY_S_MAX:
        raise ValueError(f"sensors_every_s is between 10 and {SENSORS_EVERY_S_MAX}")
