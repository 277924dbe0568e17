"""The module `nvml`: numbers of a node's NVIDIA GPUs, by the library of their driver.

A call that hangs keeps its thread, in this module's process alone; until it ends, what its sampler
measures is not known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from haptera.modules.nvml.library import GPUS_MAX, Gpu, Nvml
from haptera.sdk import SELF, Measured, Module, Privilege, Reading, Series, Target

# GPUs whose numbers fit among the series of a node; all others are only counted.
MEASURED_MAX: Final = 16


def _of_gpus(name: str, unit: str = "", high: float = 1e18, low: float = 0) -> Reading:
    return Reading("node", f"gpu.{name}", unit=unit, items_max=MEASURED_MAX, low=low, high=high)


count = Reading("node", "gpu.count", low=0, high=GPUS_MAX)
lost = Reading("node", "gpu.lost", low=0, high=GPUS_MAX)
temperature = _of_gpus("temp", "°C", 200)
margin = _of_gpus("temp_margin", "°C", 200, low=-100)
power = _of_gpus("power", "W", 10_000)
power_limit = _of_gpus("power_limit", "W", 10_000)
slowed_heat = _of_gpus("slowed_heat", high=1)
slowed_hardware = _of_gpus("slowed_hardware", high=1)
slowed_power = _of_gpus("slowed_power", high=1)
corrected = _of_gpus("ecc.corrected")
uncorrected = _of_gpus("ecc.uncorrected")
rows = _of_gpus("rows_remapped")
rows_pending = _of_gpus("rows_pending", high=1)
rows_failed = _of_gpus("rows_failed", high=1)
replays = _of_gpus("pcie_replays")

MILLI: Final = 1_000
# nvmlTemperatureSensors_t, nvmlTemperatureThresholds_t, nvmlMemoryErrorType_t, and of counters of
# errors the one that outlives the driver (nvmlEccCounterType_t).
_SENSOR_GPU: Final = 0
_THRESHOLD_SLOWDOWN: Final = 1
_CORRECTED, _UNCORRECTED = 0, 1
_AGGREGATE: Final = 1
# Bits of why clocks are lower than they could be (nvmlClocksEventReasons).
_REASONS: Final = {
    slowed_power: 0x04,
    # By heat: slowed by software, by hardware.
    slowed_heat: 0x20 | 0x40,
    # By hardware, for heat or power, and by an external power brake.
    slowed_hardware: 0x08 | 0x80,
}
Found = dict[Reading | Series, float | None]


@dataclass(frozen=True)
class NvmlSettings:
    """`library` is the management library of the driver: a name for the loader, or a path."""

    library: str = "libnvidia-ml.so.1"

    def __post_init__(self) -> None:
        if not self.library or "\0" in self.library:
            raise ValueError("library is a name for the loader, or a path")


class NvidiaDriver:
    """The driver of one node, by its library."""

    def __init__(self, target: Target) -> None:
        settings: NvmlSettings = target.settings
        self.library = settings.library


module = Module(
    "nvml",
    connect=NvidiaDriver,
    context=SELF,
    settings=NvmlSettings,
    needs=(Privilege.DEVICES,),
)


@module.sampler(
    count, lost, temperature, margin, power, power_limit, slowed_heat, slowed_hardware, slowed_power
)
def gpu_state(driver: NvidiaDriver) -> Measured:
    return _measured(driver, _state)


@module.sampler(corrected, uncorrected, rows, rows_pending, rows_failed, replays, every_s=30)
def gpu_errors(driver: NvidiaDriver) -> Measured:
    found = _measured(driver, _errors)
    return {one: value for one, value in found.items() if one not in (count, lost)}


def _measured(driver: NvidiaDriver, of: Callable[[Gpu, str], Found]) -> Found:
    """The readings of each GPU by its place, the number of GPUs, and the number that are lost."""
    with Nvml.opened(driver.library) as nvml:
        gpus = None if nvml is None else nvml.gpus()
        if gpus is None:
            return {}
        found: Found = {}
        for one in gpus[:MEASURED_MAX]:
            if (place := one.place()) is not None:
                found |= of(one, place)
        return {**found, count: len(gpus), lost: sum(one.is_lost for one in gpus)}


def _state(gpu: Gpu, place: str) -> Found:
    degrees = gpu.number("nvmlDeviceGetTemperature", _SENSOR_GPU)
    limit = gpu.number("nvmlDeviceGetTemperatureThreshold", _THRESHOLD_SLOWDOWN)
    found: Found = {
        temperature.series(place): degrees,
        margin.series(place): None if degrees is None or limit is None else limit - degrees,
        power.series(place): _watts(gpu.number("nvmlDeviceGetPowerUsage")),
        power_limit.series(place): _watts(gpu.number("nvmlDeviceGetEnforcedPowerLimit")),
    }
    reasons = gpu.long("nvmlDeviceGetCurrentClocksEventReasons")
    if reasons is None:  # its name before driver 535
        reasons = gpu.long("nvmlDeviceGetCurrentClocksThrottleReasons")
    for one, bits in _REASONS.items():
        found[one.series(place)] = None if reasons is None else int(reasons & bits != 0)
    return found


def _errors(gpu: Gpu, place: str) -> Found:
    total = "nvmlDeviceGetTotalEccErrors"
    found: Found = {
        corrected.series(place): gpu.long(total, _CORRECTED, _AGGREGATE),
        uncorrected.series(place): gpu.long(total, _UNCORRECTED, _AGGREGATE),
        replays.series(place): gpu.number("nvmlDeviceGetPcieReplayCounter"),
    }
    # For corrected and for uncorrected errors.
    some, others, pending, failed = gpu.numbers("nvmlDeviceGetRemappedRows", 4)
    found[rows.series(place)] = None if some is None or others is None else some + others
    found[rows_pending.series(place)] = pending
    found[rows_failed.series(place)] = failed
    return found


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / MILLI
