"""Counters of the kernel: memory errors, throttling, pressure, memory, and network errors."""

import re
from typing import Final

from haptera.modules.kernel_tree import KernelTree
from haptera.sdk import Measured, Reading, Series

corrected = Reading("node", "ecc.corrected", unit="errors", items_max=64, low=0)
uncorrected = Reading("node", "ecc.uncorrected", unit="errors", items_max=64, low=0)
throttles = Reading("node", "cpu.throttles", unit="events", items_max=2, low=0)
memory = Reading("node", "memory.used_percent", unit="%", low=0, high=100)
cpu_some = Reading("node", "psi.cpu_some", unit="%", low=0, high=100)
memory_some = Reading("node", "psi.memory_some", unit="%", low=0, high=100)
memory_full = Reading("node", "psi.memory_full", unit="%", low=0, high=100)
io_full = Reading("node", "psi.io_full", unit="%", low=0, high=100)
net_errors = Reading("node", "net.errors", unit="errors", items_max=16, low=0)

EDAC: Final = "sys/devices/system/edac/mc"
CPUS: Final = "sys/devices/system/cpu"
NETS: Final = "sys/class/net"
_PRESSURE: Final = {
    cpu_some: ("cpu", "some"),
    memory_some: ("memory", "some"),
    memory_full: ("memory", "full"),
    io_full: ("io", "full"),
}
_AVG10: Final = re.compile(r"^(some|full) avg10=([0-9]{1,3}(?:\.[0-9]{1,2})?) ", re.MULTILINE)
_KB: Final = re.compile(r"^(MemTotal|MemAvailable):\s+([0-9]{1,15}) kB$", re.MULTILINE)

Numbers = dict[Reading | Series, float | None]


def memory_errors(tree: KernelTree) -> Measured:
    """Errors of each DIMM; on older kernels, of each channel of a row."""
    found: Numbers = {}
    for mc in tree.names(EDAC, r"mc[0-9]{1,3}"):
        path = f"{EDAC}/{mc}"
        modules = tree.names(path, r"(?:dimm|rank)[0-9]{1,3}")
        counted = [one for one in modules if tree.has(f"{path}/{one}/dimm_ce_count")]
        for one in counted:
            found[corrected.series(f"{mc}/{one}")] = tree.number(f"{path}/{one}/dimm_ce_count")
            found[uncorrected.series(f"{mc}/{one}")] = tree.number(f"{path}/{one}/dimm_ue_count")
        if counted:
            continue
        for row in tree.names(path, r"csrow[0-9]{1,3}"):
            for name in tree.names(f"{path}/{row}", r"ch[0-9]{1,2}_ce_count"):
                item = f"{mc}/{row}/{name.removesuffix('_ce_count')}"
                found[corrected.series(item)] = tree.number(f"{path}/{row}/{name}")
            found[uncorrected.series(f"{mc}/{row}")] = tree.number(f"{path}/{row}/ue_count")
    return found


def load(tree: KernelTree) -> Measured:
    """Throttling counts of CPUs, pressure, and the use of memory."""
    found: Numbers = {}
    counts: dict[str, list[int]] = {"core": [], "package": []}
    for name in tree.names(CPUS, r"cpu[0-9]{1,5}"):
        for sort, some in counts.items():
            path = f"{CPUS}/{name}/thermal_throttle/{sort}_throttle_count"
            if (count := tree.number(path)) is not None:
                some.append(count)
    if counts["core"]:
        found[throttles.series("core")] = sum(counts["core"])
    if counts["package"]:
        # Each CPU of a package has its package's count.
        found[throttles.series("package")] = max(counts["package"])
    for reading, (file, line) in _PRESSURE.items():
        text = tree.text(f"proc/pressure/{file}") or ""
        found[reading] = next(
            (float(avg) for sort, avg in _AVG10.findall(text) if sort == line), None
        )
    has = {name: int(kb) for name, kb in _KB.findall(tree.text("proc/meminfo") or "")}
    if has.get("MemTotal") and "MemAvailable" in has:
        found[memory] = 100 * (1 - has["MemAvailable"] / has["MemTotal"])
    return found


def network_errors(tree: KernelTree) -> Measured:
    """Errors of each network card: of what is no device, as lo and bridges, none."""
    found: Numbers = {}
    for name in tree.names(NETS, r"[A-Za-z0-9._@-]{1,15}"):
        if not tree.has(f"{NETS}/{name}/device"):
            continue
        counts = [tree.number(f"{NETS}/{name}/statistics/{way}_errors") for way in ("rx", "tx")]
        known = [one for one in counts if one is not None]
        if known:
            found[net_errors.series(name)] = sum(known)
    return found
