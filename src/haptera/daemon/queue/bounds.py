"""What a job may use of its node, and as whom: a cgroup where there are any, else its rlimits.

With cgroups (v2, and root) memory and CPUs are those of the whole job, and whatever it starts ends
with it at once. Without, memory bounds each of its processes for itself, and CPUs nothing.

Where the agent is root, a job is a user without rights, unless it says which one it is; and it
sees nothing of the agent's files, as any user, as services of the node do.
"""

import os
import pwd
import stat
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from haptera.daemon.queue.container import JobContainer
from haptera.keeping.cgroups import (
    CONTROLLERS,
    bound_memory,
    bounded_in,
    cgroup_name,
    cgroups_of,
)
from haptera.keeping.gate import JOBS
from haptera.keeping.services import KEEPS
from haptera.queue.job import JobSpec, Size
from haptera.queue.work import JobLimits
from haptera.runtime.processes.confinement import capabilities, mounting
from haptera.runtime.processes.confinement.capabilities import Capability

GROUPS: Final = "haptera-jobs"
# Who runs what says no user: the first of them that the node has.
USERS: Final = ("haptera-jobs", "nobody")
# What nodes without any of them have: the number of nobody.
NOBODY: Final = pwd.struct_passwd(("nobody", "x", 65_534, 65_534, "", "/", "/bin/sh"))
# Root's powers, of a job that is root: those of services.
KEPT: Final = capabilities.of_needs(KEEPS)
CPU_PERIOD_US: Final = 100_000

_BYTES_PER_MB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class JobBounds:
    """The bounds of one job; `cgroup` need not be there yet."""

    size: Size
    cgroup: Path | None = None
    user: pwd.struct_passwd | None = None
    hidden: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    container: JobContainer | None = None

    @property
    def memory_bytes(self) -> int | None:
        """The limits of each process, where no cgroup bounds all of them together."""
        if self.cgroup is not None and "memory" in _own(self.cgroup):
            return None
        return self.size.memory_mb * _BYTES_PER_MB or None

    def text(self) -> str:
        """As the job's keeper reads it."""
        lines = []
        if self.cgroup is not None:
            lines.append(f"cgroup {self.cgroup}")
        if self.container is not None:
            lines.append(f"container {self.container.folder}")
            lines.append(f"image {self.container.image}")
        elif self.memory_bytes is not None:
            lines.append(f"memory {self.memory_bytes}")
        if self.user is not None:
            name, gid = self.user.pw_name, self.user.pw_gid
            groups = ",".join(map(str, os.getgrouplist(name, gid)))
            lines.append(f"user {self.user.pw_uid} {gid} {groups} {self.user.pw_dir or '/'}")
        if self.hidden:
            lines.append(f"mounting {Path(mounting.__file__).parent}")
            lines += [f"kept-{number} {path}" for number, path in enumerate(self.kept)]
            lines += [f"hidden-{number} {path}" for number, path in enumerate(self.hidden)]
            lines.append(f"capabilities {' '.join(str(int(one)) for one in sorted(self._powers))}")
        return "".join(f"{line}\n" for line in lines)

    @property
    def _powers(self) -> Collection[Capability]:
        """Root's, for a job that is root; what mounts for it in an image may do so."""
        is_root = self.user is not None and self.user.pw_uid == 0
        needs_more = self.container is not None and is_root
        return {*KEPT, Capability.SYS_ADMIN} if needs_more else KEPT

    def environment(self) -> Mapping[str, str]:
        """The environment that a user's programs expect; in an image there are other users."""
        if self.user is None or self.container is not None:
            return {}
        name = self.user.pw_name
        shell = self.user.pw_shell or "/bin/sh"
        return {"USER": name, "LOGNAME": name, "HOME": self.user.pw_dir, "SHELL": shell}

    def command(self, spec: JobSpec, name: str) -> list[str]:
        """The command for its keeper."""
        return list(spec.command) if self.container is None else self.container.command(name)

    def make(self) -> None:
        """Have the cgroup be there, with its limits.

        Raises:
            OSError: it cannot be made.
        """
        if self.cgroup is None:
            return
        self.cgroup.mkdir(exist_ok=True)
        controllers = _own(self.cgroup)
        if "memory" in controllers and self.size.memory_mb:
            bound_memory(self.cgroup, self.size.memory_mb * _BYTES_PER_MB)
        if "cpu" in controllers and self.size.cpus:
            share = f"{self.size.cpus * CPU_PERIOD_US} {CPU_PERIOD_US}"
            (self.cgroup / "cpu.max").write_text(share, encoding="ascii")


@dataclass(frozen=True, slots=True)
class NodeBounds:
    """What this node can bound: `groups` is the directory of its jobs' cgroups, if any."""

    groups: Path | None = None
    hidden: tuple[Path, ...] = ()

    @classmethod
    def of_this_node(cls, hidden: Iterable[str] = ()) -> "NodeBounds":
        """What there is; makes the directory. Jobs see nothing of what is `hidden`."""
        groups = cgroups_of(GROUPS)
        return cls(None if groups is None else Path(groups), tuple(map(Path, hidden)))

    @property
    def limits(self) -> JobLimits:
        """What is bounded, in a word."""
        if self.groups is not None and set(CONTROLLERS) <= bounded_in(self.groups):
            return JobLimits.CGROUP
        return JobLimits.PROCESS

    def of(self, spec: JobSpec, home: Path, container: JobContainer | None = None) -> JobBounds:
        """The bounds of the job that has this directory.

        Raises:
            OSError: it cannot be that user's, in words.
        """
        cgroup = None if self.groups is None else self.groups / cgroup_name(home)
        hidden = [one for one in self.hidden if os.geteuid() == 0 and one.is_dir()]
        kept = [home.parents[1] / JOBS]
        if container is not None:
            kept += [container.folder, container.image]
            hidden = _with_closed(hidden, home)
        user = job_user(spec.user)
        return JobBounds(spec.size, cgroup, user, tuple(hidden), tuple(kept), container)


def job_user(name: str | None) -> pwd.struct_passwd | None:
    """As whom a job runs that names a user, or none; None: as this process, which is not root.

    Raises:
        OSError: there is no such user, or this process may not be another's.
    """
    if name is not None:
        return _account(name)
    return unprivileged() if os.geteuid() == 0 else None


def unprivileged() -> pwd.struct_passwd:
    """The account of jobs that say no user."""
    known = {one.pw_name: one for one in pwd.getpwall()}
    one = next((known[name] for name in USERS if name in known), NOBODY)
    home = one.pw_dir if os.path.isdir(one.pw_dir) else "/"
    return pwd.struct_passwd((*one[:5], home, "/bin/sh"))


def _account(name: str) -> pwd.struct_passwd:
    """The user of this name, as whom a job may run.

    Raises:
        OSError: there is none, or this process may not be another's.
    """
    try:
        account = pwd.getpwnam(name)
    except KeyError:
        raise OSError(f"there is no user {name} on this node") from None
    if os.geteuid() not in (0, account.pw_uid):
        raise OSError(f"haptera is not root here: it cannot run a job as {name}")
    return account


def _with_closed(hidden: list[Path], home: Path) -> list[Path]:
    """Hide also what is closed to others on the way to a job's directory.

    What is kept in it can then be reached: the runtime goes there as the job's user.
    """
    closed = [one for one in home.parents if not one.stat().st_mode & stat.S_IXOTH]
    outermost = closed[-1] if closed else home
    return [*(one for one in hidden if not one.is_relative_to(outermost)), outermost]


def _own(cgroup: Path) -> set[str]:
    """What bounds a job's cgroup: what the directory above passes on."""
    return bounded_in(cgroup.parent)
