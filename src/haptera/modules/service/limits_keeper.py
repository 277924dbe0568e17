"""Watches what a service takes, and kills all of it where that is too much.

Imported by the keeper's program where the service has limits; like that, it imports nothing of
haptera. The limits are lines of a word and its values: `memory BYTES`, `cpu PERCENT`,
`sentinel MS FILE`; and `cgroup PATH`, where the service may have one of its own, with
`memory_cgroup PATH` beside it where the kernel bounds memory in cgroups of version 1. All that is
in there counts, else its session; and where the kernel bounds memory, nobody else looks at it.
"""

import os
import resource
import select
import signal
from collections.abc import Callable, Iterable
from typing import Protocol

EXCEEDED = "exceeded"
LOOK_EVERY_MS = 1_000
# A share of a core is over so many looks.
CPU_LOOKS = 10
LEAVE_TRIES_MAX, LEAVE_AGAIN_MS = 100, 10


class Kept(Protocol):
    """What keeps a service without limits."""

    def prepare(self) -> None: ...
    def enter(self) -> None: ...
    def await_end(self, pid: int) -> int: ...


class KeptWithinLimits:
    """A service that is kept as others are, for as long as it stays within its limits."""

    def __init__(self, limits: dict[str, list[str]], kept: Kept) -> None:
        self._limits = limits
        self._kept = kept
        self._cgroup = " ".join(limits.get("cgroup", ()))
        self._memory = " ".join(limits.get("memory_cgroup", ()))
        self._most = limits.get("memory", [""])[0]
        self._bounded = False

    def prepare(self) -> None:
        """Have its cgroup be there, with nothing in it of an earlier start."""
        self._kept.prepare()
        self._cgroup, self._memory = _made(self._cgroup), _made(self._memory)
        self._bounded = bool(self._cgroup and self._most) and _is_bounded(self._cgroup, self._most)
        if self._memory and not _is_bounded_by_v1(self._memory, self._most):
            self._memory = ""

    def enter(self) -> None:
        self._kept.enter()
        for place in filter(None, (self._cgroup, self._memory)):
            try:
                _write(f"{place}/cgroup.procs", "0")
            except OSError:
                continue  # it stays where it is: its session is watched

    def await_end(self, pid: int) -> int:
        """Its status; where it is killed, what was too much is written down before."""
        if self._cgroup and not _is_in(self._cgroup, pid, ""):
            self._cgroup, self._bounded = "", False
        if self._memory and not _is_in(self._memory, pid, "memory"):
            self._memory = ""
        if self._bounded or self._memory:
            del self._limits["memory"]
        if self._memory:
            self._limits["killed_in"] = [self._most, *self._memory.split(" ")]
        if exceeded := _exceeds(pid, lambda: self._processes(pid), self._limits):
            _write(EXCEEDED, exceeded)
            _kill(self._processes(pid))
        status = self._kept.await_end(pid)
        lacked = bool(self._cgroup) and _leave(self._cgroup) and self._bounded
        # Else it is a cgroup above that was full.
        said = _needed(self._most) if lacked else _was_killed(*self._limits.get("killed_in", ()))
        if self._memory:
            _leave(self._memory)
        if said and not exceeded:
            _write(EXCEEDED, said)
        return status

    def _processes(self, pid: int) -> dict[int, list[str]]:
        place = self._cgroup or self._memory
        return _in_cgroup(place) if place else _session(pid)


def _kill(pids: Iterable[int]) -> None:
    for one in pids:
        try:  # noqa: SIM105 - contextlib would cost every keeper its memory
            os.kill(one, signal.SIGKILL)
        except OSError:
            pass  # it has ended


def _made(cgroup: str) -> str:
    """A cgroup, with nothing in it; none where it cannot be made: the session is watched then."""
    if not cgroup:
        return ""
    _leave(cgroup)
    try:
        os.mkdir(cgroup)
    except OSError:
        return ""
    return cgroup


def _leave(cgroup: str) -> bool:
    """Kill what is left there, and remove it; whether it had too little memory."""
    # Not above: most services have none, and it costs memory.
    import job_keeper  # type: ignore[import-not-found] # found beside this file

    lacked = False
    for _ in range(LEAVE_TRIES_MAX):
        _kill(_in_cgroup(cgroup))  # one by one, where the kernel cannot do it at once
        lacked = job_keeper.leave_cgroup(cgroup) or lacked
        if not os.path.exists(cgroup):
            break
        select.poll().poll(LEAVE_AGAIN_MS)  # what was killed is not gone yet
    return lacked


def _is_in(cgroup: str, pid: int, controller: str) -> bool:
    """Whether a process was moved to a cgroup, as the kernel says of the dead, too.

    `controller` is one of version 1; without a name it is version 2.
    """
    lines = [one.split(":", 2) for one in _text(f"/proc/{pid}/cgroup").splitlines()]
    there = [place for _, names, place in lines if controller in names.split(",")]
    return any(place.split("/")[-1] == os.path.basename(cgroup) for place in there)


def _is_bounded(cgroup: str, memory: str) -> bool:
    """Whether the kernel lets it have no more memory, and kills all of it that needs more."""
    try:
        for name, value in (("max", memory), ("oom.group", "1"), ("swap.max", "0")):
            if name != "swap.max" or os.path.exists(f"{cgroup}/memory.{name}"):
                _write(f"{cgroup}/memory.{name}", value)
    except OSError:  # its controller is not there, or of cgroups v1
        return False
    return True


def _is_bounded_by_v1(cgroup: str, memory: str) -> bool:
    """As `_is_bounded`; but of what needs more, the kernel kills one process only."""
    try:
        _write(f"{cgroup}/memory.limit_in_bytes", memory)
        if os.path.exists(f"{cgroup}/memory.memsw.limit_in_bytes"):
            _write(f"{cgroup}/memory.memsw.limit_in_bytes", memory)
    except OSError:
        return False
    return True


def _exceeds(
    pid: int, processes: Callable[[], dict[int, list[str]]], limits: dict[str, list[str]]
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
    held = sum(int(fields[21]) for fields in processes.values()) * resource.getpagesize()
    if not most or held <= int(most):
        return ""
    return f"it held {held >> 20} MB of memory, {int(most) >> 20} at most"


def _was_killed(most: str = "", *cgroup: str) -> str:
    """Where the kernel has killed a process in a cgroup of version 1, for want of memory."""
    words = _text(f"{' '.join(cgroup)}/memory.oom_control").split() if most else []
    killed = words[words.index("oom_kill") + 1] if "oom_kill" in words else "0"
    return "" if killed == "0" else _needed(most)


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
    return sum(sum(map(int, fields[11:15])) for fields in processes.values())


def _session(leader: int) -> dict[int, list[str]]:
    """The processes of a session."""
    found = _lines(os.listdir("/proc"))
    return {pid: fields for pid, fields in found.items() if fields[3] == str(leader)}


def _in_cgroup(cgroup: str) -> dict[int, list[str]]:
    """The processes in a cgroup, and in those below."""
    found: list[str] = []
    for place, _, _ in os.walk(cgroup):
        try:  # noqa: SIM105 - contextlib would cost every keeper its memory
            found += _text(f"{place}/cgroup.procs").split()
        except OSError:
            pass  # removed meanwhile
    return _lines(found)


def _lines(entries: Iterable[str]) -> dict[int, list[str]]:
    """Of each process its line in /proc, from its state on."""
    found = {}
    for entry in entries:
        if not entry.isdigit():
            continue
        try:
            found[int(entry)] = _text(f"/proc/{entry}/stat").rpartition(")")[2].split()
        except OSError:
            continue
    return found


def _uptime_ms() -> int:
    # The clock of the boot, as `time` has it, which is not worth its memory.
    return round(float(_text("/proc/uptime").split()[0]) * 1_000)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
