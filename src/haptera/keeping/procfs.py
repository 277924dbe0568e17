"""Processes and other small files, read with next to nothing imported: keepers live long.

Here alone haptera reads `/proc/PID/stat` of processes on a node.
"""

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

# What is read of a file that has a few lines.
TEXT_BYTES_MAX = 65_536
# What stands where in the line of a process, from its state on: see proc_pid_stat(5).
STATE, PARENT, SESSION, CPU_TICKS, STARTED, RESIDENT_PAGES = 0, 1, 3, slice(11, 15), 19, 21
DEAD = ("Z", "X", "x")


def boot_id() -> str:
    """The id of the machine's boot; a pid and its start time mean nothing in another."""
    return read_text("/proc/sys/kernel/random/boot_id").strip()


def start_time(pid: int) -> int | None:
    """The start time of a process, which tells it from others of its number; None if it is dead."""
    try:
        words = fields(pid)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if words[STATE] in DEAD else int(words[STARTED])


def fields(pid: int | str) -> list[str]:
    """The line of a process.

    Raises:
        OSError: there is none of this number.
    """
    # The name, in parentheses, may hold anything; nothing after it does.
    return read_text(f"/proc/{pid}/stat").rpartition(")")[2].split()


def lines(pids: "Iterable[int | str]") -> dict[int, list[str]]:
    """The lines of those that are still there."""
    found = {}
    for pid in pids:
        try:
            found[int(pid)] = fields(pid)
        except OSError:
            continue
    return found


def processes() -> list[int]:
    """All there are."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def in_session(leader: int) -> list[int]:
    """Those in the session of a process, which is one of them unless it is gone."""
    found = []
    for pid in processes():
        try:
            if os.getsid(pid) == leader:
                found.append(pid)
        except OSError:
            continue
    return found


def read_text(path: str) -> str:
    """The beginning of a plain file, whatever bytes it has.

    Raises:
        OSError: it is not there, or is no plain file.
    """
    with open_plain(path) as file:
        return file.read(TEXT_BYTES_MAX).decode(errors="replace")


def write_text(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def open_plain(path: str) -> "BinaryIO":
    """Open a file to read in the folder of a service, which may have put anything in its place.

    What is no plain file counts as not there: a link elsewhere, or what is waited for.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise FileNotFoundError(path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(path)
    return os.fdopen(descriptor, "rb")
