"""Processes as /proc shows them, and killing exactly the one that is meant."""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

END_WITHIN_S = 60
LISTEN = "0A"
Value = TypeVar("Value")


class Process(NamedTuple):
    pid: int
    parent: int
    comm: str
    state: str
    started: int


def wait_for(what: str, find: Callable[[], Value | None], within_s: float) -> Value:
    """What `find` finds, once it is something."""
    began = time.monotonic()
    deadline = began + within_s
    while not (found := find()):
        ended = time.monotonic()
        assert ended < deadline, f"waited {within_s} s in vain: {what}"
        # What answers must have time for more than these questions.
        time.sleep(max(0.01, ended - began))
        began = time.monotonic()
    return found


def read_process(pid: int) -> Process | None:
    """A living process; None where there is none, or a dead one."""
    try:
        head, _, tail = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = tail.split()
    process = Process(pid, int(fields[1]), head.partition("(")[2], fields[0], int(fields[19]))
    return None if process.state in "ZX" else process


def lives(pid: int) -> bool:
    return read_process(pid) is not None


def processes() -> Iterator[Process]:
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (process := read_process(int(entry))) is not None:
            yield process


def descendants(root: int) -> list[Process]:
    every = list(processes())
    found: list[Process] = []
    queue = [root]
    while queue:
        children = [one for one in every if one.parent == queue[-1]]
        queue.pop()
        found += children
        queue += [one.pid for one in children]
    return found


def names_below() -> list[str]:
    """What the processes below this one are called."""
    return [one.comm for one in descendants(os.getpid())]


def all_of(mark: str, directory: Path) -> list[Process]:
    """What has the mark in its environment, or works in the directory, as services do."""
    return [one for one in processes() if _has(one.pid, mark) or _works_in(one.pid, directory)]


def send(process: Process, number: signal.Signals) -> bool:
    """Send a signal to this very process; whether it was there to get it."""
    with _opened(process) as pidfd:
        return pidfd is not None and _sent(pidfd, number)


def kill(process: Process) -> bool:
    """Kill -9, and wait until it is dead; whether it lived until then."""
    with _opened(process) as pidfd:
        if pidfd is None or not _sent(pidfd, signal.SIGKILL):
            return False
        ended, _, _ = select.select([pidfd], [], [], END_WITHIN_S)
        assert ended, f"{process} survives SIGKILL"
        return True


def listeners(address: str) -> dict[int, str]:
    """Who listens on this address, by the kernel's account: the socket's inode by port."""
    host = bytes(reversed([int(part) for part in address.split(".")])).hex().upper()
    found = {}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        local, _, port = fields[1].partition(":")
        if (local, fields[3]) == (host, LISTEN):
            found[int(port, 16)] = fields[9]
    return found


def holds_socket(pid: int, inode: str) -> bool:
    try:
        links = [os.readlink(one) for one in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    return f"socket:[{inode}]" in links


@contextmanager
def _opened(process: Process) -> Iterator[int | None]:
    try:
        pidfd = os.pidfd_open(process.pid)
    except ProcessLookupError:
        yield None
        return
    try:
        now = read_process(process.pid)
        yield pidfd if now is not None and now.started == process.started else None
    finally:
        os.close(pidfd)


def _sent(pidfd: int, number: signal.Signals) -> bool:
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        return False
    return True


def _has(pid: int, mark: str) -> bool:
    try:
        return mark.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _works_in(pid: int, directory: Path) -> bool:
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd")).is_relative_to(directory)
    except OSError:
        return False
