"""Sees one job to its end: within its lease and its bounds, and with all that it started.

Imported by the keeper's program where the command is a job. Whatever a job starts, in whichever
session, stays below the keeper: orphans come to it (PR_SET_CHILD_SUBREAPER), and it ends only once
none is left. Where the keeper itself is killed the kernel kills the job (PR_SET_PDEATHSIG); what
the job had started is then its agent's to find.
"""

import ctypes
import os
import resource
import select
import signal
import time  # noqa: TID251 - it is a program of its own
import warnings  # noqa: F401 - for execvp, while we may still read the library: others may not

from haptera.keeping import cgroups, procfs

# A job runs once, and only until the time in its lease: ns of the clock of the boot.
LEASE, EXPIRED = "lease", "expired"
# Lines of a word and its values: `memory` in bytes, `cgroup` a path; `user` with uid, gid, groups
# with commas between, and home. Of folders that are `hidden-` it sees what is `kept-` alone, by the
# program in the folder `mounting`; of root's powers it may ever have its `capabilities`. In its
# `container`, a folder, the root is made of the `image` and of what lies there below `skeleton`.
BOUNDS = "bounds"
# What a job writes beyond this is dropped, and its last line says so.
OUTPUT_BYTES_MAX = 16 << 20
# There, where its cgroup had too little memory.
OUT_OF_MEMORY = "oom"
LEASE_LOOKED_AT_EVERY_MS = 1_000
CHUNK_BYTES = 1 << 16
PR_SET_PDEATHSIG = 1
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36


class KeptJob:
    """One job in its keeper, and in the process that becomes it."""

    def __init__(self, bounds: dict[str, list[str]], output: str) -> None:
        self._bounds = bounds
        self._cgroup = " ".join(bounds.get("cgroup", []))
        self._output = output
        self._reading, self._writing = os.pipe()
        self._left, self._cut = OUTPUT_BYTES_MAX, False

    def prepare(self) -> None:
        """Have all orphans that descend from this process come to it."""
        _prctl(PR_SET_CHILD_SUBREAPER, 1)

    def enter(self) -> None:
        """Be bounded, in the process that becomes the job."""
        os.dup2(self._writing, 1)
        os.dup2(self._writing, 2)
        # First, for what hides things takes more memory than a job may have.
        if "mounting" in self._bounds:
            _hide(self._bounds)
            _lower(self._bounds["capabilities"])
        if self._cgroup:
            procfs.write_text(f"{self._cgroup}/cgroup.procs", "0")
        if "container" in self._bounds:
            _close_cgroups()
        if "memory" in self._bounds:
            most = int(self._bounds["memory"][0])
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        if "user" in self._bounds:
            uid, gid, groups, *home = self._bounds["user"]
            os.setgroups([int(one) for one in groups.split(",")])
            os.setgid(int(gid))
            os.setuid(int(uid))
            try:
                os.chdir(" ".join(home))
            except OSError:
                os.chdir("/")  # as cron and sshd have it
        # Last, for another user's process begins without one.
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

    def await_end(self, pid: int) -> int:
        """Its status, once all that it started has ended, too."""
        os.close(self._writing)
        output = os.open(self._output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        if not self._ends_within_lease(pid, output):
            procfs.write_text(EXPIRED, "")
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        self._end_rest()
        os.set_blocking(self._reading, False)
        while self._copy(output):
            pass
        if self._cgroup and cgroups.leave(self._cgroup):
            procfs.write_text(OUT_OF_MEMORY, "")
        return os.waitstatus_to_exitcode(status)

    def _ends_within_lease(self, pid: int, output: int) -> bool:
        """Whether it ends before a time that others put off; what it says is kept meanwhile."""
        events, ended = select.poll(), os.pidfd_open(pid)
        events.register(ended, select.POLLIN)
        events.register(self._reading, select.POLLIN)
        while True:
            now_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
            left_ms = int(procfs.read_text(LEASE)) // 1_000_000 - now_ms
            ready = {one for one, _ in events.poll(max(0, min(left_ms, LEASE_LOOKED_AT_EVERY_MS)))}
            if ended in ready:
                return True
            if left_ms <= 0:
                return False
            if self._reading in ready and not self._copy(output):
                events.unregister(self._reading)

    def _copy(self, output: int) -> bool:
        """Keep some of what it says; whether there may be more."""
        try:
            said = os.read(self._reading, CHUNK_BYTES)
        except BlockingIOError:
            return False
        kept = said[: self._left]
        self._left -= len(kept)
        if len(kept) < len(said) and not self._cut:
            self._cut = True
            kept += f"\nhaptera: {OUTPUT_BYTES_MAX} bytes are kept, and no more\n".encode()
        try:
            os.write(output, kept)
        except OSError:
            self._left, self._cut = 0, True  # a full disk ends no job
        return bool(said)

    def _end_rest(self) -> None:
        """Kill and reap all that descends from this process.

        Only its own children are killed, and those of the dead become its own: no number of these
        can be another's by now.
        """
        if self._cgroup:
            cgroups.kill(self._cgroup)
        try:
            while True:
                for pid in _children():
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(-1, 0)
        except ChildProcessError:
            pass  # there are none any more


def _hide(bounds: dict[str, list[str]]) -> None:
    """See nothing of what is hidden; where root may not mount, its modes hide it from others."""
    import sys
    from pathlib import Path

    sys.path.append(" ".join(bounds["mounting"]))
    import mounting  # type: ignore[import-not-found] # found there

    hidden, kept = (
        [Path(" ".join(one)) for word, one in bounds.items() if word.startswith(sort)]
        for sort in ("hidden-", "kept-")
    )
    try:
        mounting.hide(hidden, kept)
    except PermissionError:
        if "container" in bounds:
            raise  # it has no root without
        return
    if "container" in bounds:
        folder = Path(" ".join(bounds["container"]))
        layers = [Path(" ".join(bounds["image"])), folder / "skeleton"]
        mounting.stack(layers, folder / "root")
        mounting.allow_programs(folder)  # its init lies there, perhaps below a /run without any


def _close_cgroups() -> None:
    """Have its cgroup be its keeper's for good: a runtime would make one of its own."""
    from pathlib import Path

    import mounting  # found before

    mounting.close(Path("/sys/fs/cgroup"))


def _lower(kept: list[str]) -> None:
    """Have no program that this process becomes be given more than these, even as root."""
    last = int(procfs.read_text("/proc/sys/kernel/cap_last_cap"))
    try:
        for number in range(last + 1):
            if str(number) not in kept:
                _prctl(PR_CAPBSET_DROP, number)
    except PermissionError:
        pass  # root of some containers; it has not got them itself


def _children() -> list[int]:
    """Those of this process: by /proc, for not every kernel tells them by parent."""
    me, all_lines = str(os.getpid()), procfs.lines(procfs.processes())
    return [pid for pid, words in all_lines.items() if words[procfs.PARENT] == me]


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
