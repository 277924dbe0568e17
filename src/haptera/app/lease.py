"""A group's lease as it lies on a node: one line, changed in place under a lock.

`EPOCH PID STARTED GRANTED STATE`: the process that the epoch was granted to and when, unlike
later ones of its number by when it started. It is over once STATE is not `held`, once that process
is dead, or once the node's own time is over. That is a file of its own, `UNTIL SINCE`: the agent
moves UNTIL on only for as long as its parent shows to hear it (Gray, Cheriton, "Leases", SOSP
1989); where it ran out, SINCE is when it was given anew, and what was granted before stays over.
All these times are in ns of CLOCK_BOOTTIME.

The file is made with a line, that of nobody. So whatever else it holds, or nothing, is damage:
nobody leads by it.

Who acts as leader holds the file locked (flock, shared), so that it is not taken back in the middle
of an act.
"""

import contextlib
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Below a node's run directory: a file for each group, and the time of all of them.
LEASES: Final = "leases"
LEASE_TIME: Final = f"{LEASES}/.time"  # no group's name begins so
HELD: Final = "held"
# It is being taken back: begin nothing more, and unlock the file.
ENDING: Final = "ending"
SPENT: Final = "spent"
LINE_BYTES_MAX: Final = 128
_LINE: Final = re.compile(rb"(\d+) (\d+) (\d+) (\d+) (held|ending|spent) *\n")
TIME_BYTES_MAX: Final = 64
# The highest epoch that this process has seen in each file: none of them goes back.
_seen: Final[dict[str, int]] = {}
# Neither a link elsewhere nor something that blocks: those who lead write in the folder too.
_PLAINLY: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
# Of a process' line in /proc, counted after its name: when it started.
_STARTED: Final = 19
# Who leads begins nothing in the last of its lease: what it began has so long to end.
STOP_BEFORE_NS: Final = 200_000_000


class NotLeaderError(Exception):
    """This process does not hold its group's lease, or not any more."""


class DamagedLeaseError(Exception):
    """A lease file says nothing that one may act by."""

    def __init__(self, path: str, epoch: int) -> None:
        super().__init__(f"{path} is damaged: nobody leads by it; epoch {epoch} was seen there")
        self.epoch = epoch


@dataclass(frozen=True, slots=True)
class Lease:
    """What the file says: whose epoch it is, since when, and whether that still counts."""

    epoch: int
    pid: int
    started: int
    granted: int
    state: str

    @property
    def holder_lives(self) -> bool:
        """Whether the process that it was granted to is still there."""
        return start_time(self.pid) == self.started

    def __str__(self) -> str:
        return f"{self.epoch} {self.pid} {self.started} {self.granted} {self.state}"


@dataclass(frozen=True, slots=True)
class LeaseTime:
    """Until when, and since when without a break, leases of this node count."""

    until: int
    since: int

    def __str__(self) -> str:
        return f"{self.until} {self.since}"

    def over(self, lease: Lease, now: int) -> bool:
        """Whether a lease is over by time, now and for ever."""
        return now > self.until or lease.granted < self.since


NEVER: Final = LeaseTime(0, 0)
# Of a group that no epoch was granted of yet.
NOBODY: Final = Lease(0, 0, 0, 0, SPENT)


def parse_lease(line: bytes) -> Lease | None:
    """The lease that is written as this line; None: that is none."""
    if (found := _LINE.fullmatch(line)) is None:
        return None
    epoch, pid, started, granted = map(int, found.groups()[:4])
    return Lease(epoch, pid, started, granted, found[5].decode("ascii"))


def read_lease(descriptor: int) -> Lease:
    """What an open lease file says.

    Raises:
        DamagedLeaseError: no lease, an earlier one than was there before, or the file is gone.
    """
    path = _path(descriptor)
    seen = _seen.get(path, 0)
    lease = parse_lease(os.pread(descriptor, LINE_BYTES_MAX, 0))
    if lease is None or lease.epoch < seen or os.fstat(descriptor).st_nlink == 0:
        raise DamagedLeaseError(path, seen)
    _seen[path] = lease.epoch
    return lease


def write_lease(descriptor: int, lease: Lease) -> None:
    """Replace what the file says, in one write, so that nobody reads half of it."""
    os.pwrite(descriptor, _line(lease), 0)
    _seen[_path(descriptor)] = lease.epoch


def _path(descriptor: int) -> str:
    return os.readlink(f"/proc/self/fd/{descriptor}")


def _line(lease: Lease) -> bytes:
    return f"{lease}".ljust(LINE_BYTES_MAX - 1).encode("ascii") + b"\n"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[int]:
    """The file's descriptor; the file itself is never replaced, for locks are on it.

    What is no file in its place counts as if it had been removed.
    """
    if not _is_file(path):
        _set_aside(path)
        _make(path)
    descriptor = os.open(path, os.O_RDWR | _PLAINLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _make(path: Path) -> None:
    """Make it with its line at once: nobody sees an empty one."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, _line(NOBODY))
        with contextlib.suppress(FileExistsError):  # another one was first
            path.hardlink_to(draft)
    finally:
        os.close(descriptor)
        draft.unlink()


def _is_file(path: Path) -> bool:
    """True where a plain file is there, and no link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _set_aside(path: Path) -> None:
    """Take away whatever is no file: who leads may have put it there."""
    with contextlib.suppress(FileNotFoundError):
        path.rename(path.with_name(f".{path.name}.{secrets.token_hex(8)}"))


@contextlib.contextmanager
def shared(descriptor: int) -> Iterator[None]:
    """Hold the file, with others, against its being taken back."""
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def epoch_of(descriptor: int, session: int, times: Path) -> int | None:
    """The epoch under which the processes of a session may begin something now, if they lead."""
    try:
        lease = read_lease(descriptor)
    except DamagedLeaseError:
        return None
    if lease.state != HELD:
        return None
    if (lease.pid, lease.started) != (session, start_time(session)):
        return None
    over = read_time(times).over(lease, now_ns() + STOP_BEFORE_NS)
    return None if over else lease.epoch


def read_time(path: Path) -> LeaseTime:
    """The time of all leases of this node; whatever says none, or cannot be read, is over."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _PLAINLY)
        with os.fdopen(descriptor, "rb") as file:
            until, since = map(int, file.read(TIME_BYTES_MAX).split())
    except (OSError, ValueError):
        return NEVER
    return LeaseTime(until, since)


def write_time(path: Path, lease_time: LeaseTime) -> None:
    """Replace it; a reader sees the whole of the one or the other.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.new")
    # Those who lead write here too: what they left, a link say, is not followed.
    for one in (draft, path):
        if not _is_file(one):
            _set_aside(one)
    draft.unlink(missing_ok=True)
    with draft.open("x", encoding="ascii") as file:
        file.write(f"{lease_time}\n")
    draft.replace(path)


def now_ns() -> int:
    """The clock that leases end by: it goes on while the machine sleeps."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def start_time(pid: int) -> int | None:
    """When a process started, in the kernel's ticks since the boot; None if it is dead."""
    try:
        # The name, in parentheses, may hold anything; nothing after it does.
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[_STARTED])
