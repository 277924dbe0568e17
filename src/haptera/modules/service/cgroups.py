"""Where a node's cgroups are made, and what the kernel bounds in them."""

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Final

CONTROLLERS: Final = ("memory", "cpu")

_MOUNTS: Final = Path("/proc/self/mounts")


def cgroups_of(name: str) -> Path | None:
    """The directory of this name for cgroups, made where it was not; None where none can be.

    It is at the root of the tree, as container runtimes have it that use no systemd: a delegated
    one would not let its own unit be started again while something lives on.
    """
    mount = _mounted(_MOUNTS.read_text(encoding="utf-8"))
    if mount is None or os.geteuid() != 0:
        return None
    groups = mount / name
    try:
        groups.mkdir(exist_ok=True)
    except OSError:  # mounted read-only, as in containers
        return None
    for place in (mount, groups):
        for controller in CONTROLLERS:
            with contextlib.suppress(OSError):  # not there, or of cgroups v1
                (place / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")
    return groups


def cgroup_name(home: Path) -> str:
    """The name of the cgroup of what has this directory.

    Other nodes on the same machine, as a lab's, have jobs and replicas of the same names.

    >>> cgroup_name(Path("/run/haptera/replicas/ledger.0"))
    'ledger.0-980a9cd8'
    """
    return f"{home.name}-{hashlib.sha256(bytes(home)).hexdigest()[:8]}"


def memory_cgroups_of(name: str) -> Path | None:
    """As `cgroups_of`, of version 1, where the kernel bounds memory by that; None: it does not."""
    mount = _mounted_v1(_MOUNTS.read_text(encoding="utf-8"), "memory")
    if mount is None or os.geteuid() != 0:
        return None
    try:
        (mount / name).mkdir(exist_ok=True)
    except OSError:
        return None
    return mount / name


def bounded_in(groups: Path) -> set[str]:
    """The controllers that bound what has a cgroup in this directory."""
    try:
        return set((groups / "cgroup.subtree_control").read_text(encoding="ascii").split())
    except OSError:
        return set()


def _mounted(mounts: str) -> Path | None:
    """Where cgroups of version 2 are.

    >>> _mounted("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0")
    PosixPath('/sys/fs/cgroup')
    """
    lines = (line.split() for line in mounts.splitlines())
    return next((Path(words[1]) for words in lines if words[2] == "cgroup2"), None)


def _mounted_v1(mounts: str, controller: str) -> Path | None:
    """Where cgroups of version 1 with this controller are.

    >>> _mounted_v1("cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0", "memory")
    PosixPath('/sys/fs/cgroup/memory')
    """
    lines = (line.split() for line in mounts.splitlines())
    of_v1 = (words for words in lines if words[2] == "cgroup")
    return next((Path(words[1]) for words in of_v1 if controller in words[3].split(",")), None)
