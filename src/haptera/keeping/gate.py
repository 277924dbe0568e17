"""A gate on disk: jobs enter by it while it is open, and closing it shows who is inside.

An open gate is the file `gate` in the directory `open`. A job opens it, locks it (flock, shared)
and keeps it open for as long as it lives. To close it, the directory is renamed: no new job finds
the gate, and those that found it before are seen, for nobody can have a file open unseen.
"""

import contextlib
import errno
import fcntl
import os
import select
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from haptera.sdk import Refused

JOBS: Final = "jobs"
OPEN: Final = "open"
CLOSED: Final = "closed"
NEW: Final = "new"
GATE: Final = "gate"
PIDS_TOLD_MAX: Final = 8
# Of the command of the first of them, in characters.
COMMAND_TOLD_MAX: Final = 60
# Where leases are unknown, a look at the gate locks it for microseconds: a job tries again.
ENTER_TRIES_MAX: Final = 50
ENTER_AGAIN_S: Final = 0.01

_LOCKS: Final = Path("/proc/locks")


def gate_path(run_dir: Path) -> Path:
    """Where jobs find the gate while it is open, below the agent's run directory."""
    return run_dir.absolute() / JOBS / OPEN / GATE


def enter(path: Path) -> int | None:
    """Go in by the gate: None where it is closed, else a descriptor of it, shared-locked.

    The gate knows of the job for as long as this descriptor, or one inherited from it, is open.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    # Read again once it is locked: a process that closes it afterwards sees the lock.
    if _lock_shared(descriptor) and path.exists():
        return descriptor
    os.close(descriptor)
    return None


class JobsGate:
    """The side of the gate that opens and closes it; all its state is on disk."""

    def __init__(self, run_dir: Path) -> None:
        self._directory = run_dir / JOBS
        self._open = self._directory / OPEN
        self._closed = self._directory / CLOSED

    @property
    def in_use(self) -> bool:
        """Whether a job is inside, or on its way in; be the gate open or closed."""
        return any(_is_open_elsewhere(place / GATE) for place in (self._open, self._closed))

    def hold(self) -> None:
        """Close the gate, and see that nobody is inside; a gate that never opened is closed.

        Raises:
            Refused: a job is inside. The gate is open.
        """
        self._refuse_if_in_use()  # first, so that a busy gate is not closed even for a moment
        with contextlib.suppress(FileNotFoundError):
            self._open.rename(self._closed)
        self._refuse_if_in_use()

    def release(self) -> None:
        """Open the gate, whatever it was."""
        if self._open.exists():
            return
        if not self._closed.exists():
            self._make()
        self._closed.rename(self._open)

    def _refuse_if_in_use(self) -> None:
        if self.in_use:
            text = _told([*holders(self._open / GATE), *holders(self._closed / GATE)])
            self.release()
            raise Refused(text)

    def _make(self) -> None:
        """A new gate, closed; there is no moment at which it lacks its file."""
        new = self._directory / NEW
        new.mkdir(parents=True, exist_ok=True)
        (new / GATE).touch()
        new.rename(self._closed)


def holders(gate: Path) -> list[int | None]:
    """For each lock of the gate, which is one job: who holds it; None where nobody is found.

    The kernel names who locked, which may have ended and left the lock to what it began.
    """
    try:
        status, locks = gate.stat(), _LOCKS.read_text(encoding="ascii")
    except OSError:
        return []
    file = _lock_of(status)
    lockers = sorted(int(words[4]) for words in map(str.split, locks.splitlines()) if file(words))
    ended = {pid for pid in lockers if not _has_open(pid, status)}
    heirs = _heirs(ended, status) if ended else {}
    return [heirs.get(pid) if pid in ended else pid for pid in lockers]


def _lock_of(status: os.stat_result) -> Callable[[list[str]], bool]:
    """Whether a line of /proc/locks is a job's lock of this file."""
    major, minor = os.major(status.st_dev), os.minor(status.st_dev)
    file = f"{major:02x}:{minor:02x}:{status.st_ino}"
    # 12: FLOCK  ADVISORY  READ 4711 fe:00:1234 0 EOF; those that wait have an arrow first.
    return lambda words: words[1:4:2] == ["FLOCK", "READ"] and words[5] == file


def _heirs(lockers: set[int], status: os.stat_result) -> dict[int, int]:
    """By who locked, the first process that has what it locked."""
    found: dict[int, int] = {}
    lock = _lock_of(status)
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        for descriptor in _open(pid, status):
            with contextlib.suppress(OSError):
                info = Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text(encoding="ascii")
                rows = (line.split()[1:] for line in info.splitlines() if line[:5] == "lock:")
                for words in rows:
                    if lock(words) and int(words[4]) in lockers:
                        found.setdefault(int(words[4]), pid)
        if found.keys() == lockers:
            break
    return found


def _has_open(pid: int, status: os.stat_result) -> bool:
    """Whether a process has the file open; one whose descriptors we may not see may have."""
    try:
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                if os.path.samestat(os.stat(f"/proc/{pid}/fd/{descriptor}"), status):
                    return True
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _open(pid: int, status: os.stat_result) -> Iterator[str]:
    """The descriptors of a process that are of this file, as far as we may see them."""
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{descriptor}"), status):
                yield descriptor


def _told(pids: list[int | None]) -> str:
    if not pids:
        return "a job runs, or is about to"
    jobs = "1 job runs" if len(pids) == 1 else f"{len(pids)} jobs run"
    known = [pid for pid in pids if pid is not None]
    if not known:
        return jobs
    more = ", …" if len(known) > PIDS_TOLD_MAX else ""
    command = _command(known[0])
    what = f": {command}" if command else ""
    return f"{jobs} (locked by {', '.join(map(str, known[:PIDS_TOLD_MAX]))}{more}){what}"


def _command(pid: int) -> str:
    """What a job was called with, without the flock that runs it; nothing of one that is gone."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return ""
    own = next((at for at, word in enumerate(words) if word.endswith(f"/{OPEN}/{GATE}")), -1)
    text = " ".join(words[own + 1 :]).strip()
    return text if len(text) <= COMMAND_TOLD_MAX else f"{text[: COMMAND_TOLD_MAX - 1]}…"


def _is_open_elsewhere(gate: Path) -> bool:
    """Whether any process but this has the file open, locked or not.

    The kernel grants a lease to write only where nobody else has the file open. A job that opens
    it meanwhile waits until the lease is given back, some microseconds, and is not refused.
    """
    try:
        descriptor = os.open(gate, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Whether the process of a waiting job lives: a signal that does nothing finds out.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    except OSError as error:
        # Not all file systems have leases; locks must do then, which tell less.
        return error.errno == errno.EAGAIN or not _lock(descriptor, fcntl.LOCK_EX)
    finally:
        os.close(descriptor)
    return False


def _lock_shared(descriptor: int) -> bool:
    for _ in range(ENTER_TRIES_MAX):
        if _lock(descriptor, fcntl.LOCK_SH):
            return True
        select.select((), (), (), ENTER_AGAIN_S)
    return False


def _lock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
