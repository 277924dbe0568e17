"""Temperatures, fans and power, as the kernel's hwmon and thermal zones have them."""

import re
from collections.abc import Iterator
from typing import Final

from haptera.modules.kernel_tree import KernelTree
from haptera.sdk import Measured, Reading, Series

inlet = Reading("node", "temp.inlet", unit="°C", low=-60, high=150)
cpu = Reading("node", "temp.cpu", unit="°C", items_max=64, low=-60, high=200)
other = Reading("node", "temp.other", unit="°C", items_max=64, low=-60, high=250)
fan = Reading("node", "fan.speed", unit="rpm", items_max=32, low=0, high=100_000)
# Of the machine, by its ACPI power meter; of anything else that has a meter.
power = Reading("node", "power.machine", unit="W", low=0, high=200_000)
other_power = Reading("node", "power.other", unit="W", items_max=32, low=0, high=200_000)

HWMON: Final = "sys/class/hwmon"
ZONES: Final = "sys/class/thermal"
# Drivers whose sensors are of CPUs.
CPU_CHIPS: Final = {"coretemp", "k10temp", "zenpower", "cpu_thermal", "scmi_sensors"}
_CPU_ZONES: Final = re.compile(r"x86_pkg_temp|cpu.*")
_INLET: Final = re.compile(r"inlet|ambient|intake|front panel", re.IGNORECASE)
_MILLI: Final = 1_000
_MICRO: Final = 1_000_000
_METER: Final = "power_meter"


def temperatures(tree: KernelTree) -> Measured:
    """All temperatures, speeds of fans and meters of power; of several inlets the hottest."""
    found: dict[Reading | Series, float | None] = {}
    inlets: list[float] = []
    for chip, path in _chips(tree):
        for name in tree.names(path, r"temp[0-9]{1,3}_input"):
            if (milli := tree.number(f"{path}/{name}")) is None:
                continue
            stem = name.removesuffix("_input")
            label = (tree.text(f"{path}/{stem}_label") or "").strip() or stem
            if _INLET.search(label):
                inlets.append(milli / _MILLI)
            else:
                family = cpu if chip.partition("#")[0] in CPU_CHIPS else other
                found[family.series(f"{chip}/{label}")] = milli / _MILLI
        for name in tree.names(path, r"fan[0-9]{1,3}_input"):
            found[fan.series(f"{chip}/{name.removesuffix('_input')}")] = tree.number(
                f"{path}/{name}"
            )
        found |= _powers(tree, chip, path)
    for zone in tree.names(ZONES, r"thermal_zone[0-9]{1,3}"):
        sort = (tree.text(f"{ZONES}/{zone}/type") or "").strip() or zone
        if (milli := tree.number(f"{ZONES}/{zone}/temp")) is not None:
            family = cpu if _CPU_ZONES.fullmatch(sort) else other
            found[family.series(f"{zone}/{sort}")] = milli / _MILLI
    if inlets:
        found[inlet] = max(inlets)
    return found


def _powers(tree: KernelTree, chip: str, path: str) -> dict[Reading | Series, float | None]:
    """The value of each meter of a chip: its average where it has one."""
    found: dict[Reading | Series, float | None] = {}
    for name in tree.names(path, r"power[0-9]{1,3}_(?:input|average)"):
        stem, _, sort = name.partition("_")
        series = other_power.series(f"{chip}/{stem}")
        key = power if (chip, stem) == (_METER, "power1") else series
        micro = tree.number(f"{path}/{name}")
        if micro is not None and (sort == "average" or key not in found):
            found[key] = micro / _MICRO
    return found


def _chips(tree: KernelTree) -> Iterator[tuple[str, str]]:
    """Each chip by its name, the second of a name as `coretemp#2`; and where it stands."""
    seen: dict[str, int] = {}
    for one in tree.names(HWMON, r"hwmon[0-9]{1,3}"):
        path = f"{HWMON}/{one}"
        name = (tree.text(f"{path}/name") or "").strip() or one
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name}#{seen[name]}", path
        # Older drivers have their files one folder below.
        if tree.has(f"{path}/device/temp1_input"):
            yield f"{name}/device", f"{path}/device"
