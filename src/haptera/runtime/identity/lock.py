"""One process at a time on one file: a lock that names its holder and ends with it."""

import contextlib
import fcntl
import os
from pathlib import Path

from haptera.model.errors import Code, HapteraError


class Lock:
    """Held from `take` to `release`, or to the end of the process.

    It is a record lock, which forked children do not inherit: a keeper that outlives its agent
    must not keep the next agent out. So the file is opened here only.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        os.close(self._descriptor)


def take(path: Path) -> Lock:
    """Lock `path` with `.lock` added.

    Raises:
        HapteraError: another process holds it, named by its pid.
    """
    place = path.with_name(path.name + ".lock")
    descriptor = os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise HapteraError(
            f"this directory is in use by process {holder or '(not named yet)'}",
            where=str(path),
            do="stop that process, or use another directory",
            code=Code.IN_USE,
        ) from None
    # The name is for people; a full disk must not keep the only process from starting.
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return Lock(descriptor)
