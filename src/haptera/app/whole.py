"""A command that ends as a whole: with all that it started, whatever groups and sessions that made.

Its keeper, a process in a session of its own, stays between it and its starter. Orphans come
to the keeper (PR_SET_CHILD_SUBREAPER), so all that descends from the command stays below it; a
cgroup, where one can be made, kills all of that in one act. The keeper ends everything when the
command ends, on request, and when its starter dies, by whichever signal. Where the
keeper is killed, what was below it comes to its own parent, which does the same.

What another process starts on the command's behalf (cron, a service manager, a container runtime,
another machine) is not below it, and is not ended.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from haptera.app.lease import start_time

PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
STATUS_BYTES_MAX: Final = 4_096
# So long are those who were killed waited for; what hangs in the kernel acts no more.
KILLED_WITHIN_S: Final = 5
# So often is looked for what is to be killed; it cannot fork faster than it is killed for ever.
KILLS_MAX: Final = 100
_MOUNTS: Final = Path("/proc/self/mounts")
_CGROUPS: Final = Path("/proc/self/cgroup")
# What the keeper says of the command before its status; the second is followed by the error.
_RUNS: Final = b"r"
_NOT_RUN: Final = b"e"


class WholeCommand:
    """A command that runs, seen by the process that started it."""

    def __init__(self, keeper: int, status: int, lifeline: int) -> None:
        self._keeper = keeper
        self._status = status
        self._lifeline = lifeline

    @classmethod
    def start(cls, command: Sequence[str], environment: Mapping[str, str]) -> "WholeCommand":
        """Start it, in this session; for a process of one thread.

        Raises:
            OSError: it cannot be run.
        """
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        status, report = os.pipe()
        held, lifeline = os.pipe()
        keeper = os.fork()
        if keeper == 0:
            os.close(status)
            os.close(lifeline)
            _keep(command, environment, report, held)
        os.close(report)
        os.close(held)
        if os.read(status, len(_NOT_RUN)) == _NOT_RUN:
            number = int(os.read(status, STATUS_BYTES_MAX))
            os.waitpid(keeper, 0)
            raise OSError(number, os.strerror(number))
        return cls(keeper, status, lifeline)

    def wait(self, within_s: float | None = None) -> int | None:
        """Its status, as of `Popen`, once nothing of it is left; None: it goes on."""
        if not select.select([self._status], [], [], within_s)[0]:
            return None
        said = os.read(self._status, STATUS_BYTES_MAX)
        # Its keeper was killed: what was below that is below this process now.
        _end_all_below()
        _remove(_cgroup_of(self._keeper))
        return int(said) if said else -signal.SIGKILL

    def ask_to_end(self) -> None:
        """Send it SIGTERM."""
        os.kill(self._keeper, signal.SIGTERM)

    def kill(self) -> None:
        """Kill it with all that it started, and the rest of this session, and this process."""
        os.close(self._lifeline)
        me, leader = os.getpid(), os.getsid(0)
        # The leader last but one: its end ends this process, where something keeps it.
        _kill_until_none(lambda one: one.session == leader and one.pid not in {me, leader})
        self.wait(KILLED_WITHIN_S)
        _kill_until_none(lambda one: one.pid == leader != me)
        os.killpg(0, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    session: int
    started: int
    lives: bool


def _keep(command: Sequence[str], environment: Mapping[str, str], report: int, held: int) -> None:
    """Be the keeper, to the end."""
    try:
        # The receiver may be dead; what is kept is ended all the same.
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        cgroup = _made(_cgroup_of(os.getpid()))
        reading, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakeup)
        try:
            process = subprocess.Popen(command, env=environment, preexec_fn=lambda: _enter(cgroup))
        except OSError as error:
            _say(report, _NOT_RUN + str(error.errno).encode())
            return
        os.setsid()  # what ends that session does not end the keeper
        signal.signal(signal.SIGTERM, lambda *_: process.send_signal(signal.SIGTERM))
        _say(report, _RUNS)
        status = _await_end(process.pid, reading, held)
        _end_cgroup(cgroup)
        _end_all_below()
        _remove(cgroup)
        _say(report, str(status).encode())
    finally:
        _end_all_below()
        os._exit(0)


def _say(report: int, said: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(report, said)


def _await_end(pid: int, reading: int, held: int) -> int:
    """Its status, or that of one that is killed: then nobody holds the other end any more."""
    while held not in select.select([reading, held], [], [])[0]:
        os.read(reading, STATUS_BYTES_MAX)
        for ended, status in _reaped():
            if ended == pid:
                return os.waitstatus_to_exitcode(status)
    return -signal.SIGKILL


def _reaped() -> Iterator[tuple[int, int]]:
    """The children that have ended."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended


def _end_all_below() -> None:
    """Kill and reap all that descends from this process.

    What is forked meanwhile has a parent that is being killed, whose end is waited for: so it is
    found the next time.
    """
    with contextlib.suppress(ChildProcessError):
        while True:
            _kill(_below(os.getpid()))
            os.waitpid(-1, 0)
            list(_reaped())


def _below(pid: int) -> list[_Process]:
    """All that descend from a process and live."""
    by_parent: dict[int, list[_Process]] = {}
    for one in _processes():
        by_parent.setdefault(one.parent, []).append(one)
    found = list(by_parent.get(pid, ()))
    for one in found:  # which grows meanwhile
        found += by_parent.get(one.pid, ())
    return [one for one in found if one.lives]


def _kill_until_none(chosen: Callable[[_Process], bool]) -> None:
    for _ in range(KILLS_MAX):
        found = [one for one in _processes() if one.lives and chosen(one)]
        if not found:
            return
        _kill(found)


def _kill(found: list[_Process]) -> None:
    for one in found:
        # Ended, or of another user: it has changed who it is, as setuid programs do.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            descriptor = os.pidfd_open(one.pid)
            try:
                if start_time(one.pid) == one.started:
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            finally:
                os.close(descriptor)


def _processes() -> Iterator[_Process]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                # The name, in parentheses, may hold anything; nothing after it does.
                text = Path(f"/proc/{name}/stat").read_text(encoding="utf-8", errors="replace")
                fields = text.rpartition(")")[2].split()
                state, parent, _, session = fields[:4]
                yield _Process(
                    int(name), int(parent), int(session), int(fields[19]), state not in "ZX"
                )


def _cgroup_of(keeper: int) -> Path | None:
    """Where its cgroup may be, below that of this process; None where there are none."""
    mounts = (line.split() for line in _MOUNTS.read_text(encoding="utf-8").splitlines())
    mount = next((words[1] for words in mounts if words[2] == "cgroup2"), None)
    lines = _CGROUPS.read_text(encoding="utf-8").splitlines()
    place = next((line[len("0::") :] for line in lines if line.startswith("0::")), None)
    if mount is None or place is None:
        return None
    return Path(f"{mount}{place}/haptera-fence-{keeper}")


def _made(cgroup: Path | None) -> Path | None:
    if cgroup is None:
        return None
    try:
        cgroup.mkdir()
    except OSError:  # mounted read-only, or another user's
        return None
    return cgroup


def _enter(cgroup: Path | None) -> None:
    """In the process that becomes the command."""
    if cgroup is not None:
        with contextlib.suppress(OSError):
            (cgroup / "cgroup.procs").write_text("0", encoding="ascii")
    # Where its keeper and that one's parent are killed together, it ends, too.
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_cgroup(cgroup: Path | None) -> None:
    if cgroup is not None:
        with contextlib.suppress(OSError):  # of a kernel before 5.14
            (cgroup / "cgroup.kill").write_text("1", encoding="ascii")


def _remove(cgroup: Path | None) -> None:
    if cgroup is not None:
        with contextlib.suppress(OSError):
            cgroup.rmdir()


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
