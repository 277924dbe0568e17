"""The only file that reads a clock: the machine's time since boot, and people's wall time."""

import time
from pathlib import Path
from typing import Final

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def now_ns() -> int:
    """Nanoseconds of CLOCK_BOOTTIME: never set back, sleep included, alike in all processes."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def wall_s() -> float:
    """Seconds since 1970; for people, and deciding nothing."""
    return time.time()


def wall_offset_ns() -> int:
    """By how much the wall clock is ahead of `now_ns`; it changes where the clock is set."""
    return time.time_ns() - now_ns()


def kernel_boot() -> str:
    """Which boot of the machine this is: `now_ns` of two boots must not be compared."""
    return _BOOT_ID.read_text(encoding="ascii").strip()
