"""Watches what a service takes, and kills all of it where that is too much.

Imported by the keeper's program where the service has limits. These are lines of a word and its
values: `memory BYTES`, `cpu PERCENT`, `sentinel MS FILE`; and `cgroup PATH`, where the service may
have one of its own, with `memory_cgroup PATH` beside it where the kernel bounds memory in cgroups
of version 1. All that is in there counts, else its session; and where the kernel bounds memory,
nobody else looks at it.
"""

import os
import resource
import select

from haptera.keeping import cgroups, procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Kept(Protocol):
        """The way in which a command is kept."""

        def prepare(self) -> None:
            """Do what comes before the command is there, in its keeper."""

        def enter(self) -> None:
            """Do what comes first in the process that becomes the command."""

        def await_end(self, pid: int) -> int:
            """Its status, once it has ended."""


EXCEEDED = "exceeded"
LOOK_EVERY_MS = 1_000
# A share of a core is over so many looks.
CPU_LOOKS = 10


class KeptWithinLimits:
    """A service that is kept as others are, for as long as it stays within its limits."""

    def __init__(self, limits: dict[str, list[str]], kept: "Kept") -> None:
        self._limits = limits
        self._kept = kept
        self._cgroup = " ".join(limits.get("cgroup", ()))
        self._memory = " ".join(limits.get("memory_cgroup", ()))
        self._most = limits.get("memory", [""])[0]
        self._bounded = False

    def prepare(self) -> None:
        """Have its cgroup be there, with nothing in it of an earlier start."""
        self._kept.prepare()
        self._cgroup, self._memory = cgroups.made(self._cgroup), cgroups.made(self._memory)
        by_v2, by_v1 = cgroups.bound_memory, cgroups.bound_memory_by_v1
        self._bounded = bool(self._cgroup and self._most) and _able(by_v2, self._cgroup, self._most)
        if self._memory and not _able(by_v1, self._memory, self._most):
            self._memory = ""

    def enter(self) -> None:
        self._kept.enter()
        for place in filter(None, (self._cgroup, self._memory)):
            try:
                procfs.write_text(f"{place}/cgroup.procs", "0")
            except OSError:
                continue  # it stays where it is: its session is watched

    def await_end(self, pid: int) -> int:
        """Its status; where it is killed, what was too much is written down before."""
        if self._cgroup and not cgroups.holds(self._cgroup, pid):
            self._cgroup, self._bounded = "", False
        if self._memory and not cgroups.holds(self._memory, pid, "memory"):
            self._memory = ""
        if self._bounded or self._memory:
            del self._limits["memory"]
        if self._memory:
            self._limits["killed_in"] = [self._most, *self._memory.split(" ")]
        if exceeded := _exceeds(pid, lambda: self._processes(pid), self._limits):
            procfs.write_text(EXCEEDED, exceeded)
            cgroups.kill_each([*self._processes(pid)])
        status = self._kept.await_end(pid)
        lacked = bool(self._cgroup) and cgroups.clear(self._cgroup) and self._bounded
        # Else it is a cgroup above that was full.
        said = _needed(self._most) if lacked else _was_killed(*self._limits.get("killed_in", ()))
        if self._memory:
            cgroups.clear(self._memory)
        if said and not exceeded:
            procfs.write_text(EXCEEDED, said)
        return status

    def _processes(self, pid: int) -> dict[int, list[str]]:
        place = self._cgroup or self._memory
        return procfs.lines(cgroups.processes(place) if place else procfs.in_session(pid))


def _able(bound: "Callable[[str, str], None]", cgroup: str, most: str) -> bool:
    """Whether the kernel bounds it so."""
    try:
        bound(cgroup, most)
    except OSError:
        return False
    return True


def _exceeds(
    pid: int, processes: "Callable[[], dict[int, list[str]]]", limits: dict[str, list[str]]
) -> str:
    """Watch what a command takes: what was too much, or nothing once it has ended."""
    ended = select.poll()
    ended.register(os.pidfd_open(pid), select.POLLIN)
    ticks, looked = [_ticks(processes())], [_uptime_ms()]
    touched = [0, looked[0]]
    while not ended.poll(LOOK_EVERY_MS):
        found = processes()
        ticks, looked = [*ticks[-CPU_LOOKS:], _ticks(found)], [*looked[-CPU_LOOKS:], _uptime_ms()]
        exceeded = (
            _too_large(found, *limits.get("memory", ()))
            or _was_killed(*limits.get("killed_in", ()))
            or _too_busy(ticks, looked, *limits.get("cpu", ()))
            or _too_silent(touched, *limits.get("sentinel", ()))
        )
        if exceeded:
            return exceeded
    return ""


def _too_large(processes: dict[int, list[str]], most: str = "") -> str:
    pages = sum(int(fields[procfs.RESIDENT_PAGES]) for fields in processes.values())
    held = pages * resource.getpagesize()
    if not most or held <= int(most):
        return ""
    return f"it held {held >> 20} MB of memory, {int(most) >> 20} at most"


def _was_killed(most: str = "", *cgroup: str) -> str:
    """Where the kernel has killed a process in a cgroup of version 1, for want of memory."""
    killed = most and cgroups.count(f"{' '.join(cgroup)}/memory.oom_control", "oom_kill")
    return _needed(most) if killed else ""


def _needed(most: str) -> str:
    return f"it needed more than {int(most) >> 20} MB of memory"


def _too_busy(ticks: list[int], looked: list[int], most: str = "") -> str:
    """Once it was looked at often enough; a process that ends takes what it took with it."""
    if not most or len(looked) <= CPU_LOOKS:
        return ""
    took = (ticks[-1] - ticks[0]) * 1_000 // os.sysconf("SC_CLK_TCK")
    share = took * 100 // max(1, looked[-1] - looked[0])
    return f"it took {share} % of a core, {most} at most" if share > int(most) else ""


def _too_silent(touched: list[int], most_ms: str = "", *name: str) -> str:
    """By the clock of the boot: that of the file may be set.

    `touched` is the time that the file had when it was last seen to change, and when that was.
    """
    if not most_ms:
        return ""
    path, now_ms = " ".join(name), _uptime_ms()
    try:
        stamp = os.stat(path).st_mtime_ns
    except OSError:
        stamp = touched[0]  # one that is not there is not touched
    if stamp != touched[0]:
        touched[:] = stamp, now_ms
    silent_ms = now_ms - touched[1]
    if silent_ms <= int(most_ms):
        return ""
    return f"it stalled: {path} was not touched for {silent_ms / 1_000:.1f} s"


def _ticks(processes: dict[int, list[str]]) -> int:
    """All that these took, and their children that have ended."""
    return sum(sum(map(int, fields[procfs.CPU_TICKS])) for fields in processes.values())


def _uptime_ms() -> int:
    # The clock of the boot, as `time` has it, which is not worth its memory.
    return round(float(procfs.read_text("/proc/uptime").split()[0]) * 1_000)
