"""Watches what a service's session takes, and kills all of it where that is too much.

Imported by the keeper's program where the service has limits; like that, it imports nothing of
haptera. The limits are lines of a word and its values: `memory BYTES`, `cpu PERCENT`,
`sentinel MS FILE`.
"""

import os
import resource
import select
import signal
from typing import Protocol

EXCEEDED = "exceeded"
LOOK_EVERY_MS = 1_000
# A share of a core is over so many looks.
CPU_LOOKS = 10


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
        self.prepare, self.enter = kept.prepare, kept.enter  # as without limits

    def await_end(self, pid: int) -> int:
        """Its status; where it is killed, what was too much is written down before."""
        if exceeded := _exceeds(pid, self._limits):
            with open(EXCEEDED, "w", encoding="utf-8") as file:
                file.write(exceeded)
            for one in _session(pid):
                try:  # noqa: SIM105 - contextlib would cost every keeper its memory
                    os.kill(one, signal.SIGKILL)
                except OSError:
                    pass  # it has ended
        return self._kept.await_end(pid)


def _exceeds(pid: int, limits: dict[str, list[str]]) -> str:
    """Watch what a command's session takes: what was too much, or nothing once it has ended."""
    ended = select.poll()
    ended.register(os.pidfd_open(pid), select.POLLIN)
    ticks, looked = [_ticks(pid)], [_uptime_ms()]
    touched = [0, looked[0]]
    while not ended.poll(LOOK_EVERY_MS):
        ticks, looked = [*ticks[-CPU_LOOKS:], _ticks(pid)], [*looked[-CPU_LOOKS:], _uptime_ms()]
        exceeded = (
            _too_large(pid, *limits.get("memory", ()))
            or _too_busy(ticks, looked, *limits.get("cpu", ()))
            or _too_silent(touched, *limits.get("sentinel", ()))
        )
        if exceeded:
            return exceeded
    return ""


def _too_large(pid: int, most: str = "") -> str:
    held = sum(int(fields[21]) for fields in _session(pid).values()) * resource.getpagesize()
    if not most or held <= int(most):
        return ""
    return f"it held {held >> 20} MB of memory, {int(most) >> 20} at most"


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


def _ticks(pid: int) -> int:
    """All that the living processes of a session took, and their children that have ended."""
    return sum(sum(map(int, fields[11:15])) for fields in _session(pid).values())


def _session(leader: int) -> dict[int, list[str]]:
    """The processes of a session, each with its line in /proc from its state on."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            fields = _text(f"/proc/{entry}/stat").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[3] == str(leader):
            found[int(entry)] = fields
    return found


def _uptime_ms() -> int:
    # The clock of the boot, as `time` has it, which is not worth its memory.
    return round(float(_text("/proc/uptime").split()[0]) * 1_000)


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
