"""A machine's init: starts one process, starts it again when it dies, and reaps orphans."""

import contextlib
import os
import pkgutil
import select
import shutil
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from haptera.keeping.cgroups import cgroup_name
from haptera.lab import record, tree

# How long a dead process stays down; constant, as a kill is no reason to trust it less.
RESTART_MS: Final = 200

CGROUPS: Final = Path("/sys/fs/cgroup")


class InitConfig(msgspec.Struct, frozen=True):
    """What one init runs, `wait_ms` after it starts.

    `target` is called as target(arguments, descriptors): the arguments given here and, where a
    machine boots with a secret, `arguments["boot"]` = 0, the index of the descriptor to read it
    from. `scratch` is a directory that is empty after each boot, as /run is.
    """

    name: str
    target: str
    arguments: dict[str, Any]
    log: str
    pid_file: str
    init_pid_file: str
    scratch: str | None = None
    wait_ms: int = 0


class ForkTarget(Protocol):
    """What a forked process runs."""

    def __call__(self, arguments: dict[str, Any], descriptors: list[int], /) -> None: ...


def init_process(arguments: dict[str, Any], descriptors: list[int]) -> None:
    """Be the init of the parent's machine, which has no power to cut: a fork target."""
    tree.leave_terminal()
    run_init(msgspec.convert(arguments, InitConfig), None)


def run_init(config: InitConfig, secret: bytes | None) -> None:
    """Be the init until killed."""
    tree.rename(f"init {config.name}")
    tree.adopt_orphans()
    redirect(Path(config.log))
    if config.scratch is not None:
        clear_cgroups(Path(config.scratch))
        shutil.rmtree(config.scratch, ignore_errors=True)
        os.makedirs(config.scratch, mode=0o700)
    write_pid(Path(config.init_pid_file), os.getpid())
    select.select((), (), (), config.wait_ms / 1000)
    while True:
        child = _start(config, secret)
        write_pid(Path(config.pid_file), child)
        _reap_until(child)
        select.select((), (), (), RESTART_MS / 1000)


def redirect(log: Path) -> None:
    """Read nothing, and write standard output and errors to the end of this file."""
    record.make_room(log)
    null = os.open(os.devnull, os.O_RDONLY)
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(null, 0)
    os.dup2(file, 1)
    os.dup2(file, 2)
    for descriptor in {null, file} - {0, 1, 2}:
        os.close(descriptor)


def write_pid(path: Path, pid: int) -> None:
    """Say in a file who runs; a reader sees the whole number or the one before."""
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(f"{pid}\n", encoding="ascii")
    draft.replace(path)


def _start(config: InitConfig, secret: bytes | None) -> int:
    arguments = dict(config.arguments)
    descriptors: list[int] = []
    if secret is not None:
        arguments["boot"] = len(descriptors)
        descriptors.append(_sealed(secret))
    target: ForkTarget = pkgutil.resolve_name(config.target)
    child = tree.fork(lambda: _be(config.name, target, arguments, descriptors), descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    return child


def _be(name: str, target: ForkTarget, arguments: dict[str, Any], descriptors: list[int]) -> None:
    tree.rename(name)
    target(arguments, descriptors)


def _sealed(secret: bytes) -> int:
    """A descriptor to read the secret from, which lies in memory only."""
    descriptor = os.memfd_create("boot", os.MFD_CLOEXEC)
    os.write(descriptor, secret)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _reap_until(child: int) -> None:
    """Wait for this child, and bury every orphan that ends meanwhile."""
    while os.wait()[0] != child:
        pass


def clear_cgroups(scratch: Path, mount: Path = CGROUPS) -> None:
    """Remove those of systems, replicas and jobs that ended with their machine."""
    systems = (f"haptera/{run.name}" for run in scratch.glob("systems/*/runtime/*"))
    others = (f"haptera-*/{cgroup_name(home)}" for home in scratch.glob("*/*"))
    for name in (*systems, *others):
        for group in [*mount.glob(name), *mount.glob(f"*/{name}")]:
            with contextlib.suppress(OSError):  # something lives in it all the same
                group.rmdir()
