"""Process trees: who descends from whom, and how to end them all."""

import contextlib
import ctypes
import errno
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple, NoReturn

from haptera.keeping import procfs
from haptera.model.errors import HapteraError
from haptera.runtime import clock
from haptera.runtime.processes.zygote import close_others, die_with

PR_SET_NAME: Final = 15
PR_SET_CHILD_SUBREAPER: Final = 36
CLONE_NEWNS: Final = 0x20000
MS_REC: Final = 0x4000
MS_PRIVATE: Final = 0x40000
# How long the kernel may take to end processes that were sent SIGKILL.
END_MS_MAX: Final = 10_000
# Between two looks at processes that are about to be gone.
LOOK_AGAIN_MS: Final = 5

_libc = ctypes.CDLL(None, use_errno=True)


class LabProcess(NamedTuple):
    """One process; `started` (ticks since the machine's start) tells it from a later namesake."""

    pid: int
    parent: int
    session: int
    started: int
    dead: bool


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def leave_terminal() -> None:
    """Have a session of its own, so that Ctrl-C reaches the lab alone, which ends the rest."""
    with contextlib.suppress(PermissionError):  # it leads one already
        os.setsid()


def own_mounts() -> None:
    """Have mounts of one's own, which are gone with the last process that sees them.

    Who may not mount anything needs none.
    """
    if os.geteuid() != 0:
        return
    nothing, everything = b"none", MS_REC | MS_PRIVATE
    if _libc.unshare(CLONE_NEWNS) == 0 and _libc.mount(nothing, b"/", None, everything, None) == 0:
        return
    number = ctypes.get_errno()
    if number != errno.EPERM:  # root of a container, perhaps
        raise OSError(number, os.strerror(number))


def rename(name: str) -> None:
    """Show this name in ps, cut to 15 bytes."""
    _prctl(PR_SET_NAME, name.encode()[:15])


def fork(run: Callable[[], None], keep: Collection[int]) -> int:
    """Fork a process that does `run` with no descriptors but the standard ones and `keep`.

    It dies with this one.
    """
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _live(run, keep, parent)
    return pid


def read_process(pid: int) -> LabProcess | None:
    """One process as /proc shows it; None where there is none."""
    try:
        words = procfs.fields(pid)
    except (FileNotFoundError, ProcessLookupError):
        return None
    parent, session, started = (
        int(words[one]) for one in (procfs.PARENT, procfs.SESSION, procfs.STARTED)
    )
    return LabProcess(pid, parent, session, started, words[procfs.STATE] in procfs.DEAD)


def processes() -> Iterator[LabProcess]:
    """All processes that can be seen."""
    for pid in procfs.processes():
        if (process := read_process(pid)) is not None:
            yield process


def descendants(roots: Iterable[int], spare: Collection[int] = ()) -> list[LabProcess]:
    """What descends from these, parents first, without the trees of `spare`."""
    children: dict[int, list[LabProcess]] = {}
    for process in processes():
        children.setdefault(process.parent, []).append(process)
    found: dict[int, LabProcess] = {}
    queue = list(roots)
    while queue:
        for process in children.get(queue.pop(0), ()):
            if process.pid not in found and process.pid not in spare:
                found[process.pid] = process
                queue.append(process.pid)
    return list(found.values())


def kill(process: LabProcess) -> None:
    """SIGKILL this very process, not another that has its number by now."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        now = read_process(process.pid)
        if now is not None and now.started == process.started:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    finally:
        os.close(descriptor)


def end_descendants(spare: Collection[int] = ()) -> None:
    """Kill and reap all that descends from this process, without the trees of `spare`.

    This process must have adopted orphans, or some of them get away.
    """
    end_all(lambda: descendants([os.getpid()], spare), spare)


def end_all(living: Callable[[], Iterable[LabProcess]], spare: Collection[int] = ()) -> None:
    """Kill until `living` finds nothing more, for a process may fork until it is killed itself.

    Raises:
        HapteraError: some would not end.
    """
    deadline = clock.now_ns() + END_MS_MAX * 1_000_000
    while found := list(living()):
        for process in found:
            if not process.dead:
                kill(process)
        reap_children(spare)
        if clock.now_ns() > deadline:
            pids = ", ".join(str(process.pid) for process in found)
            raise HapteraError(f"processes {pids} do not end", do="look for a hung disk or mount")
        select.select((), (), (), LOOK_AGAIN_MS / 1000)


def reap_children(spare: Collection[int] = ()) -> None:
    """Take the exit status of each child that is dead, but for `spare`."""
    for process in processes():
        if process.parent == os.getpid() and process.dead and process.pid not in spare:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def _live(run: Callable[[], None], keep: Collection[int], parent: int) -> NoReturn:
    """Be the forked child, to the end; never return into the parent's frames."""
    status = 1
    try:
        die_with(parent)
        close_others(keep)
        run()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 (the last frame of a process: nobody above can hear of it)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _prctl(option: int, value: int | bytes) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")
