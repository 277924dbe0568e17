"""The module `sensors`: numbers that a node measures of itself, each sort in rounds of its own.

What hangs, as a file system of a network does, delays its own sort alone.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from haptera.modules.kernel_tree import KernelTree
from haptera.modules.sensors import kernel, kernel_log, smart, temperatures
from haptera.modules.sensors.checks import CheckProgram, checked, state, words_of
from haptera.modules.sensors.kernel_log import KernelLog, patterns_of
from haptera.sdk import Context, HostPath, Measured, Module, Reading, Target

used = Reading("node", "disk.used_percent", unit="%", items_max=16, low=0, high=100)

CHECKS_EVERY_S: Final = 60
CHECKS_WITHIN_S: Final = 30
SMART_EVERY_S: Final = 300
SMART_WITHIN_S: Final = 120

# How far each log was read by this process.
_logs: Final[dict[Path, KernelLog]] = {}


@dataclass(frozen=True)
class SensorSettings:
    """`root` is where /sys and /proc are, `disks` the mounts whose space is measured.

    `log_patterns` are regular expressions by name, `heartbeats` files by the application's name.
    """

    root: HostPath = HostPath("/")
    disks: tuple[str, ...] = ("/",)
    checks: tuple[CheckProgram, ...] = field(default=())
    log_patterns: Mapping[str, str] = field(default_factory=dict)
    heartbeats: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for one in self.checks:
            words_of(one)
        patterns_of(self.log_patterns)


class NodeSensors:
    """The sensors of one node."""

    def __init__(self, target: Target) -> None:
        settings: SensorSettings = target.settings
        self.tree = KernelTree.at(settings.root)
        self.disks = settings.disks
        self.checks = settings.checks
        self.patterns = patterns_of(settings.log_patterns)
        self.heartbeats = settings.heartbeats


module = Module("sensors", connect=NodeSensors, context=Context.SELF, settings=SensorSettings)


@module.sampler(
    temperatures.inlet,
    temperatures.cpu,
    temperatures.other,
    temperatures.fan,
    temperatures.power,
    temperatures.other_power,
)
def heat(one: NodeSensors) -> Measured:
    return temperatures.temperatures(one.tree)


@module.sampler(kernel.corrected, kernel.uncorrected)
def memory_errors(one: NodeSensors) -> Measured:
    return kernel.memory_errors(one.tree)


@module.sampler(
    kernel.throttles,
    kernel.memory,
    kernel.cpu_some,
    kernel.memory_some,
    kernel.memory_full,
    kernel.io_full,
)
def load(one: NodeSensors) -> Measured:
    return kernel.load(one.tree)


@module.sampler(kernel.net_errors)
def network(one: NodeSensors) -> Measured:
    return kernel.network_errors(one.tree)


@module.sampler(used)
def disks(one: NodeSensors) -> Measured:
    return {used.series(disk): used_percent(one.tree.root, disk) for disk in one.disks}


@module.sampler(*smart.READINGS, every_s=SMART_EVERY_S, within_s=SMART_WITHIN_S)
async def smart_of_disks(one: NodeSensors) -> Measured:
    return await smart.smart(one.tree)


@module.sampler(kernel_log.events)
def log(one: NodeSensors) -> Measured:
    return _logs.setdefault(one.tree.root, KernelLog()).read(one.tree, one.patterns)


@module.sampler(kernel_log.beat)
def heartbeats(one: NodeSensors) -> Measured:
    return kernel_log.heartbeats(one.tree, one.heartbeats)


@module.sampler(state, every_s=CHECKS_EVERY_S, within_s=CHECKS_WITHIN_S + 5)
async def checks(one: NodeSensors) -> Measured:
    return await checked(one.checks, CHECKS_WITHIN_S)


def used_percent(root: Path, disk: str) -> float | None:
    """The use of a file system for its users, in percent, as in `df`; None where there is none."""
    try:
        found = os.statvfs(root / disk.lstrip("/"))
    except (OSError, ValueError):
        return None
    taken = found.f_blocks - found.f_bfree
    usable = taken + found.f_bavail
    return None if usable <= 0 else 100 * taken / usable
