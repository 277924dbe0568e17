"""The health rules that come with haptera; what a site declares of the same name replaces one."""

from typing import Final

from haptera.health.rule import Grade, HealthRule, Mode, parse_pipeline


def _rule(
    name: str, sensors: str, pipeline: str, grade: Grade, source: str, mode: Mode = Mode.SUGGEST
) -> HealthRule:
    return HealthRule(name, sensors, parse_pipeline(pipeline), grade, mode, source)


_ASHRAE: Final = "ASHRAE TC 9.9, Thermal Guidelines, 5th ed. (2021): class A2 allows 10 to 35 °C"
_MCELOG: Final = "mcelog.conf, ce-error-threshold of a DIMM: 10 / 24h; of a socket: 100 / 24h"
_PINHEIRO: Final = (
    "Pinheiro, Weber, Barroso, Failure Trends in a Large Disk Drive Population (FAST 2007)"
)

BUNDLED: Final[tuple[HealthRule, ...]] = (
    _rule(
        "inlet-trend",
        "*temp.inlet",
        "within -20 120 | median 5 | window 30m | trend above 35 in 30m",
        Grade.PREDICTED,
        _ASHRAE,
    ),
    _rule(
        "inlet-hot",
        "*temp.inlet",
        "within -20 120 | median 3 | above 35 clear 32 for 2m",
        Grade.DEGRADED,
        _ASHRAE,
    ),
    _rule(
        "cpu-trend",
        "*temp.cpu",
        "within -20 150 | median 5 | window 30m | trend above 95 in 30m",
        Grade.PREDICTED,
        "Linux hwmon, temp*_crit of coretemp and k10temp: 95 to 105 °C for most server CPUs",
    ),
    _rule(
        "cpu-throttled",
        "cpu.throttles",
        "rise | decay 10m | above 10 clear 1",
        Grade.DEGRADED,
        "Linux, sysfs thermal_throttle/*_throttle_count: more than once a minute",
    ),
    _rule(
        "memory-corrected",
        "*.corrected",
        "rise | decay 24h | above 10 clear 5",
        Grade.DEGRADED,
        _MCELOG,
    ),
    _rule(
        "memory-trend",
        "*.corrected",
        "rise | decay 24h | window 30m | trend above 100 in 30m",
        Grade.PREDICTED,
        _MCELOG,
    ),
    _rule(
        "memory-uncorrected",
        "*.uncorrected",
        "rise | decay 7d | above 0.5",
        Grade.FAILED,
        "Linux Documentation/driver-api/edac.rst, ue_count: data was lost",
        Mode.ACT,
    ),
    _rule(
        "disk-full",
        "disk.used_percent",
        "within 0 100 | above 95 clear 90 for 1m",
        Grade.DEGRADED,
        "ext4 keeps 5 % for root (mke2fs -m): above 95 % users' writes fail",
    ),
    _rule(
        "disk-trend",
        "disk.used_percent",
        "within 0 100 | median 3 | window 30m | trend above 95 in 30m",
        Grade.PREDICTED,
        "ext4 keeps 5 % for root (mke2fs -m): above 95 % users' writes fail",
    ),
    _rule(
        "disk-failing",
        "smart.failing",
        "above 0.5",
        Grade.FAILED,
        "ATA ACS-4, SMART RETURN STATUS: a threshold was exceeded",
        Mode.ACT,
    ),
    _rule(
        "disk-reallocated",
        "smart.reallocated",
        "rise | decay 7d | above 8 clear 1",
        Grade.DEGRADED,
        _PINHEIRO + ": after its first reallocation a disk fails 14 times as often in 60 days",
    ),
    _rule(
        "memory-pressed",
        "psi.memory_full",
        "median 5 | above 10 clear 5 for 5m",
        Grade.DEGRADED,
        "Linux Documentation/accounting/psi.rst: percent of time in which no task made progress;"
        " systemd-oomd acts at 60 % in 30 s",
    ),
    _rule(
        "network-errors",
        "net.errors",
        "rise | decay 10m | above 100 clear 10",
        Grade.DEGRADED,
        "IEEE 802.3, bit error ratio 1e-12: a sound link of 10 Gbit/s has six errors in ten"
        " minutes at full load",
    ),
    _rule(
        "bmc-critical",
        "bmc.state",
        "median 3 | above 1.5",
        Grade.DEGRADED,
        "IPMI 2.0, table 35-15; Redfish, Status.Health: critical by the maker's own thresholds",
    ),
    _rule(
        "bmc-events",
        "sel.events[Critical]",
        "rise | decay 1d | above 0.5",
        Grade.DEGRADED,
        "Redfish, LogEntry.Severity: a critical condition that requires immediate attention",
    ),
    _rule(
        "log-full",
        "sel.used_percent",
        "above 90 clear 75",
        Grade.DEGRADED,
        "IPMI 2.0, 31.2: a full System Event Log drops what comes",
    ),
    _rule(
        "gpu-xid",
        "log.events[xid]",
        "rise | decay 1d | above 0.5",
        Grade.DEGRADED,
        "NVIDIA, XID Errors: a fault of the GPU, its driver or a program",
    ),
    _rule(
        "gpu-lost",
        "gpu.lost",
        "above 0.5",
        Grade.FAILED,
        "NVIDIA, NVML API, nvmlReturn_t: the GPU has fallen off the bus, or needs a reset",
    ),
    _rule(
        "gpu-hot",
        "gpu.temp_margin",
        "median 3 | below 3 clear 8 for 2m",
        Grade.DEGRADED,
        "NVIDIA, NVML API, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN: from there on it is slowed",
    ),
    _rule(
        "gpu-slowed",
        "gpu.slowed_heat",
        "above 0.5 for 5m",
        Grade.DEGRADED,
        "NVIDIA, NVML API, nvmlClocksEventReasons: thermal slowdown, of software or hardware",
    ),
    _rule(
        "gpu-braked",
        "gpu.slowed_hardware",
        "above 0.5 for 5m",
        Grade.DEGRADED,
        "NVIDIA, NVML API, nvmlClocksEventReasons: hardware slowdown, or an external power brake",
    ),
    _rule(
        "gpu-rows-pending",
        "gpu.rows_pending",
        "above 0.5",
        Grade.DEGRADED,
        "NVIDIA, GPU Memory Error Management: rows are remapped once the GPU is reset",
    ),
    _rule(
        "gpu-rows-failed",
        "gpu.rows_failed",
        "above 0.5",
        Grade.FAILED,
        "NVIDIA, GPU Memory Error Management: a row could not be remapped; replace the GPU",
        Mode.ACT,
    ),
    _rule(
        "machine-check",
        "log.events[mce]",
        "rise | decay 1d | above 0.5",
        Grade.DEGRADED,
        "Linux Documentation/arch/x86/x86_64/machinecheck.rst: a hardware error was logged",
    ),
    _rule(
        "tasks-hung",
        "log.events[hung_task]",
        "rise | decay 1h | above 2.5 clear 0.5",
        Grade.DEGRADED,
        "Linux, kernel.hung_task_timeout_secs: a task was blocked for 120 s; three within an hour",
    ),
    _rule(
        "kernel-lockup",
        "log.events[lockup]",
        "rise | decay 1d | above 0.5",
        Grade.DEGRADED,
        "Linux Documentation/admin-guide/lockup-watchdogs.rst: a CPU did nothing else for 20 s",
    ),
    _rule(
        "heartbeat-stopped",
        "heartbeat.at",
        "unchanged 5m",
        Grade.DEGRADED,
        "its file was not touched for five minutes",
    ),
    _rule(
        "check-failed",
        "check.state",
        "median 3 | above 1.5",
        Grade.FAILED,
        "Nagios Plugin API: 0 is OK, 1 WARNING, 2 CRITICAL",
    ),
    _rule(
        "check-warned",
        "check.state",
        "median 3 | above 0.5",
        Grade.DEGRADED,
        "Nagios Plugin API: 0 is OK, 1 WARNING, 2 CRITICAL",
    ),
)
BY_NAME: Final = {one.name: one for one in BUNDLED}
TRENDS: Final = tuple(one for one in BUNDLED if one.grade is Grade.PREDICTED)
