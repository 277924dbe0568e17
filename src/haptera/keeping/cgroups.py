"""Control groups of what a node keeps: where they are made, what they bound, how they end.

Agents say where one may be, and keepers make and remove it; like these, this imports next to
nothing.
"""

import os
import select
import signal

from haptera.keeping import procfs

CONTROLLERS = ("memory", "cpu")
CLEAR_TRIES_MAX, CLEAR_AGAIN_MS = 100, 10


def cgroups_of(name: str) -> str | None:
    """The directory of this name for cgroups, made where it was not; None where none can be.

    It is at the root of the tree, as container runtimes have it that use no systemd: a delegated
    one would not let its own unit be started again while something lives on.
    """
    mount = _mounted(_mounts(), "cgroup2")
    groups = _made_in(mount, name)
    for place in filter(None, (groups and mount, groups)):
        for controller in CONTROLLERS:
            try:
                procfs.write_text(f"{place}/cgroup.subtree_control", f"+{controller}")
            except OSError:  # not there, or of cgroups v1
                continue
    return groups


def memory_cgroups_of(name: str) -> str | None:
    """As `cgroups_of`, of version 1, where the kernel bounds memory by that; None: it does not."""
    return _made_in(_mounted(_mounts(), "cgroup", "memory"), name)


def cgroup_name(home: "str | os.PathLike[str]") -> str:
    """The name of the cgroup of what has this directory.

    Other nodes on the same machine, as a lab's, have jobs and replicas of the same names.

    >>> cgroup_name("/run/haptera/replicas/ledger.0")
    'ledger.0-980a9cd8'
    """
    import hashlib  # for agents alone

    return f"{os.path.basename(home)}-{hashlib.sha256(os.fsencode(home)).hexdigest()[:8]}"


def bounded_in(groups: "str | os.PathLike[str]") -> set[str]:
    """The controllers that bound what has a cgroup in this directory."""
    try:
        return set(procfs.read_text(f"{groups}/cgroup.subtree_control").split())
    except OSError:
        return set()


def bound_memory(cgroup: "str | os.PathLike[str]", most_bytes: int | str) -> None:
    """Have the kernel let it have no more memory, and kill all of it that needs more.

    Raises:
        OSError: its controller is not there, or is of version 1.
    """
    procfs.write_text(f"{cgroup}/memory.max", str(most_bytes))
    procfs.write_text(f"{cgroup}/memory.oom.group", "1")
    if os.path.exists(f"{cgroup}/memory.swap.max"):  # not in a kernel without swap
        procfs.write_text(f"{cgroup}/memory.swap.max", "0")


def bound_memory_by_v1(cgroup: str, most_bytes: int | str) -> None:
    """As `bound_memory`; but of what needs more, the kernel kills one process only.

    Raises:
        OSError: its controller is not there.
    """
    for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"):
        if name != "memory.memsw.limit_in_bytes" or os.path.exists(f"{cgroup}/{name}"):
            procfs.write_text(f"{cgroup}/{name}", str(most_bytes))


def made(cgroup: str) -> str:
    """A cgroup, with nothing in it; none where it cannot be made."""
    if not cgroup:
        return ""
    clear(cgroup)
    try:
        os.mkdir(cgroup)
    except OSError:
        return ""
    return cgroup


def clear(cgroup: str) -> bool:
    """Kill what is left there, and remove it; whether it had too little memory."""
    lacked = False
    for _ in range(CLEAR_TRIES_MAX):
        kill_each(processes(cgroup))  # one by one, where the kernel cannot do it at once
        lacked = leave(cgroup) or lacked
        if not os.path.exists(cgroup):
            break
        select.poll().poll(CLEAR_AGAIN_MS)  # what was killed is not gone yet
    return lacked


def leave(cgroup: str) -> bool:
    """As `clear`, but once: what hangs in the kernel is left there, and the cgroup with it."""
    kill(cgroup)
    try:
        lacked = count(f"{cgroup}/memory.events", "oom_kill") > 0
    except OSError:
        lacked = False  # its memory is not bounded there
    for place, _, _ in os.walk(cgroup, topdown=False):
        try:  # noqa: SIM105 - contextlib would cost every keeper its memory
            os.rmdir(place)
        except OSError:
            pass  # something hangs in the kernel
    return lacked


def kill(cgroup: str) -> None:
    """Kill all that is there, and below, at once."""
    try:  # noqa: SIM105 - contextlib would cost every keeper its memory
        procfs.write_text(f"{cgroup}/cgroup.kill", "1")
    except OSError:
        pass  # gone, or of a kernel before 5.14: its processes are found one by one


def kill_each(pids: "list[int]") -> None:
    for one in pids:
        try:  # noqa: SIM105 - contextlib would cost every keeper its memory
            os.kill(one, signal.SIGKILL)
        except OSError:
            pass  # it has ended


def processes(cgroup: str) -> list[int]:
    """The processes in a cgroup, and in those below."""
    found: list[int] = []
    for place, _, _ in os.walk(cgroup):
        try:
            found += map(int, _all_of(f"{place}/cgroup.procs").split())
        except OSError:
            continue  # removed meanwhile
    return found


def holds(cgroup: str, pid: int, controller: str = "") -> bool:
    """Whether a process was moved to a cgroup, as the kernel says of the dead, too.

    `controller` is one of version 1; without a name it is version 2.
    """
    lines = [one.split(":", 2) for one in procfs.read_text(f"/proc/{pid}/cgroup").splitlines()]
    there = [place for _, names, place in lines if controller in names.split(",")]
    return any(place.split("/")[-1] == os.path.basename(cgroup) for place in there)


def count(path: str, word: str) -> int:
    """The number after a word; 0 where the word is not there.

    Raises:
        OSError: the file is not there.
    """
    words = procfs.read_text(path).split()
    return int(words[words.index(word) + 1]) if word in words else 0


def _mounts() -> str:
    return _all_of("/proc/self/mounts").decode(errors="replace")


def _all_of(path: str) -> bytes:
    """All of a file of the kernel, however much it has to say."""
    with procfs.open_plain(path) as file:
        return file.read()


def _made_in(mount: str | None, name: str) -> str | None:
    if mount is None or os.geteuid() != 0:
        return None
    try:
        os.makedirs(f"{mount}/{name}", exist_ok=True)
    except OSError:  # mounted read-only, as in containers
        return None
    return f"{mount}/{name}"


def _mounted(mounts: str, sort: str, controller: str | None = None) -> str | None:
    """The place of a version's cgroups; of version 1, of those with a controller.

    >>> _mounted("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0", "cgroup2")
    '/sys/fs/cgroup'
    >>> _mounted("cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0", "cgroup", "memory")
    '/sys/fs/cgroup/memory'
    """
    for words in (line.split() for line in mounts.splitlines()):
        if words[2] == sort and (controller is None or controller in words[3].split(",")):
            return words[1]
    return None
