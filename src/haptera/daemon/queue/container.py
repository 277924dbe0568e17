"""A job in an image: what the OCI runtime is given for it, and the files that it is given there.

The runtime is run by the job's keeper, as the job's user, in a mount namespace of the job's own. In
the image this user is root, by a user namespace, and nobody else is there. So whatever ends a job,
its keeper or the runtime, the kernel takes away all that was mounted for it.
"""

import os
import pwd
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.daemon.queue.cdi import FOLDERS, device, edits, shown
from haptera.images.manifest import PATH_DEFAULT, ImageManifest
from haptera.modules.system.bundle import (
    CAPABILITIES,
    CLOSED_PATHS,
    QUIET,
    REAPER_INSIDE,
    RESOLV,
    bind,
    inside,
    mount,
)
from haptera.modules.system.container import RUNTIME, complaint
from haptera.modules.system.reaper import reaper
from haptera.queue.job import JobSpec

# What a job may write into /tmp, which is memory of its own.
SCRATCH_MB: Final = 256
USERS_MAX: Final = 0xFFFF_FFFE
_FOLDER: Final = "container"
# In the one folder there that is the job's user's.
_LOG: Final = "state/runtime.log"
# Mounted by the runtime for each job, so that nothing need be there in the image.
_OWN: Final = (
    mount("/proc", "proc", *QUIET),
    mount("/dev", "tmpfs", "nosuid", "strictatime", "mode=755", "size=64k"),
    mount("/dev/pts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666"),
    mount("/dev/shm", "tmpfs", *QUIET, "mode=1777", "size=64m"),
    mount("/dev/mqueue", "mqueue", *QUIET),
    # Another one would take a network namespace of its own.
    bind(Path("/sys"), "/sys", "rbind", "ro", *QUIET),
    mount("/run", "tmpfs", "nosuid", "nodev", "mode=755", "size=16m"),
    mount("/tmp", "tmpfs", "nosuid", "nodev", "mode=1777", f"size={SCRATCH_MB}m"),
)


@dataclass(frozen=True, slots=True)
class JobContainer:
    """One job in an image, whose root is mounted at `image`; `folder` is its own, for the runtime.

    Over an image that lacks a place where something is to be mounted, `skeleton` has that: the root
    is made of both, and of nothing that could be written.
    """

    folder: Path
    image: Path
    manifest: ImageManifest
    # Where vendors say what their devices are.
    cdi: tuple[Path, ...] = FOLDERS

    @classmethod
    def of(cls, home: Path, image: Path, manifest: ImageManifest) -> "JobContainer":
        """That of the job which has this directory."""
        return cls(home / _FOLDER, image, manifest)

    @property
    def skeleton(self) -> Path:
        return self.folder / "skeleton"

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def log(self) -> Path:
        """The complaint of the runtime."""
        return self.folder / _LOG

    def command(self, name: str) -> list[str]:
        """The command for the job's keeper.

        Limits are those of the keeper's cgroup, which the runtime is to leave as it is (rootless).
        """
        said = ("--rootless", "true", "--log", str(self.log), "--root", str(self.log.parent))
        return [RUNTIME, *said, "run", "--bundle", str(self.folder), name]

    def make(
        self,
        spec: JobSpec,
        user: pwd.struct_passwd,
        environment: Mapping[str, str],
        memory_bytes: int | None,
    ) -> None:
        """Write all that the runtime reads.

        Raises:
            OSError: it cannot be written; or the image lacks the command, or the node a device.
        """
        for place in (self.folder, self.root, self.skeleton, self.log.parent):
            place.mkdir(mode=0o755, exist_ok=True)
        os.chown(self.log.parent, user.pw_uid, user.pw_gid)
        known = edits((one for one in spec.devices if not one.startswith("/")), self.cdi)
        mounts = [*_OWN, *_given(spec), *self._init()]
        mounts += [bound for one in known for bound in one.binds]
        brought = dict(text.partition("=")[::2] for one in known for text in one.env)
        for one in mounts:
            _make_place(self.skeleton, one["destination"], Path(one["source"]))
        said = {
            "ociVersion": "1.0.2",
            "hostname": os.uname().nodename,
            "root": {"path": str(self.root), "readonly": True},
            "process": self._process(spec, {**brought, **environment}, memory_bytes),
            "mounts": mounts,
            "linux": {
                "namespaces": [{"type": one} for one in ("user", "mount", "pid", "ipc", "uts")],
                "uidMappings": _mapped(user.pw_uid),
                "gidMappings": _mapped(user.pw_gid),
                **CLOSED_PATHS,
            },
        }
        (self.folder / "config.json").write_bytes(msgspec.json.encode(said))

    def _init(self) -> Iterator[dict[str, Any]]:
        """The first process, if there is one for this machine: it hands signals on, and reaps."""
        program = reaper(self.manifest.architecture)
        if program is not None:
            place = self.folder / "init"
            place.write_bytes(program)
            place.chmod(0o755)
            yield bind(place, REAPER_INSIDE)

    def _process(
        self, spec: JobSpec, environment: Mapping[str, str], memory_bytes: int | None
    ) -> dict[str, Any]:
        first = () if reaper(self.manifest.architecture) is None else (REAPER_INSIDE,)
        return {
            "args": [*first, self._command(spec.command[0]), *spec.command[1:]],
            "cwd": spec.folder or self.manifest.folder,
            "env": [f"{name}={value}" for name, value in self._environment(environment)],
            "user": {"uid": 0, "gid": 0},
            "noNewPrivileges": True,
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), CAPABILITIES),
            "rlimits": [] if memory_bytes is None else [_address_space(memory_bytes)],
        }

    def _environment(self, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        own = dict(one.partition("=")[::2] for one in self.manifest.environment)
        # Its home is where it may write.
        start = {"PATH": PATH_DEFAULT, "HOME": "/tmp", "container": "haptera"}
        # Where programs are looked for on the node is nothing to the image.
        told = {name: value for name, value in given.items() if name != "PATH"}
        yield from {**start, **own, **told}.items()

    def _command(self, command: str) -> str:
        """The command by its path in the image, as its environment says where to look.

        Raises:
            OSError: it is not there.
        """
        if "/" in command:
            return command  # perhaps in what is mounted there
        path = dict(self._environment({}))["PATH"]
        for folder in path.split(":"):
            found = inside(self.image, f"{folder}/{command}")
            if found is not None and found.is_file() and found.stat().st_mode & 0o111:
                return f"{folder}/{command}"
        raise OSError(f"image {self.manifest.name} has no command {command!r} in {path}")


def runtime_fault(home: Path) -> str | None:
    """Why the runtime did not run the job that has this directory; None where it did."""
    return complaint(home / _FOLDER / _LOG)


def _given(spec: JobSpec) -> Iterator[dict[str, Any]]:
    """The places of its node that a job sees: its own mounts, and the files that resolve names."""
    if RESOLV.exists():
        yield bind(RESOLV, str(RESOLV), "ro", *QUIET)
    for one in spec.mounts:
        yield shown(one.source, one.target, writable=one.writable)
    for path in spec.devices:
        if path.startswith("/"):
            yield device(path, path)


def _make_place(skeleton: Path, destination: str, source: Path) -> None:
    """Have a place be there on which something is mounted: a folder, or a file for a file.

    Only names are taken from the destination, so that it is nowhere but in the skeleton.
    """
    names = [one for one in destination.split("/") if one not in ("", ".", "..")]
    place = skeleton.joinpath(*names)
    if source.is_absolute() and source.exists() and not source.is_dir():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    else:
        place.mkdir(parents=True, exist_ok=True)


def _mapped(number: int) -> list[dict[str, int]]:
    """Root inside is this one outside; for root outside too, all others are themselves.

    Two lines for these: programs take one line of all users for the machine's own namespace.
    """
    half = USERS_MAX // 2
    parts = [(0, number, 1)] if number else [(0, 0, half), (half, half, USERS_MAX - half)]
    return [{"containerID": a, "hostID": b, "size": size} for a, b, size in parts]


def _address_space(most_bytes: int) -> dict[str, Any]:
    """The limit of each process, where no cgroup bounds all of them."""
    return {"type": "RLIMIT_AS", "soft": most_bytes, "hard": most_bytes}
