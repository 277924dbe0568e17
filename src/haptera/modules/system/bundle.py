"""How a system is run: the configuration that an OCI runtime is given for an image."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from haptera.images.manifest import PATH_DEFAULT, ImageManifest, command_places
from haptera.kinds.system import SystemLimits
from haptera.sdk import Refused

# Where the gate of the node's jobs stands in the system, and an init: all of haptera that is there.
JOBS_INSIDE: Final = "/run/haptera/jobs"
REAPER_INSIDE: Final = "/run/haptera/init"
RESOLV: Final = Path("/etc/resolv.conf")
LINKS_MAX: Final = 40
# What root of a system may do: what containers usually may.
CAPABILITIES: Final = (
    *("CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL"),
    *("CAP_MKNOD", "CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID"),
    *("CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_CHROOT"),
)
CPU_PERIOD_US: Final = 100_000
# The signal that asks systemd, and no other init, to end: see systemd(1).
SYSTEMD_STOP: Final = "SIGRTMIN+3"
_MASKED: Final = ("acpi", "kcore", "keys", "latency_stats", "timer_list", "sched_debug", "scsi")
_READ_ONLY: Final = ("bus", "fs", "irq", "sys", "sysrq-trigger")
# Of the kernel's files, those that nobody inside reads, or writes.
CLOSED_PATHS: Final = {
    "maskedPaths": [*(f"/proc/{one}" for one in _MASKED), "/sys/firmware"],
    "readonlyPaths": [f"/proc/{one}" for one in _READ_ONLY],
}
QUIET: Final = ("nosuid", "noexec", "nodev")


@dataclass(frozen=True, slots=True)
class SystemSurroundings:
    """What a system finds around it: host name, the jobs' gate, variables, limits, an init."""

    hostname: str
    jobs: Path
    environment: Mapping[str, str]
    limits: SystemLimits = field(default_factory=SystemLimits)
    # Where the program lies that is its first process, if the image has none.
    reaper: Path | None = None


def configuration(
    manifest: ImageManifest, root: Path, around: SystemSurroundings, cgroup: str
) -> dict[str, Any]:
    """The `config.json` of a bundle; see the OCI's runtime specification.

    systemd keeps its services in groups of its own below the system's, and cannot mount itself what
    it needs: see systemd.io/CONTAINER_INTERFACE.
    """
    by_systemd = manifest.stop_signal == SYSTEMD_STOP
    namespaces = ("mount", "pid", "ipc", "uts", *(["cgroup"] if by_systemd else []))
    given = {"container": "haptera", "PATH": PATH_DEFAULT}
    given |= dict(one.partition("=")[::2] for one in manifest.environment)
    given |= around.environment
    return {
        "ociVersion": "1.0.2",
        "hostname": around.hostname,
        "root": {"path": str(root)},
        "process": {
            "args": [*_command(manifest, root, around)],
            "cwd": manifest.folder,
            "env": [f"{name}={value}" for name, value in given.items()],
            "user": {"uid": 0, "gid": 0},
            "capabilities": {
                one: [*CAPABILITIES] for one in ("bounding", "effective", "permitted")
            },
        },
        "mounts": [*_mounts(around), *(_SYSTEMD_MOUNTS if by_systemd else [])],
        "linux": {
            "cgroupsPath": cgroup,
            # The network is the node's: what a system serves, the node serves.
            "namespaces": [{"type": one} for one in namespaces],
            "resources": _resources(around.limits),
            **CLOSED_PATHS,
        },
    }


def _command(manifest: ImageManifest, root: Path, around: SystemSurroundings) -> Iterable[str]:
    if around.reaper is None:
        return manifest.command
    # It looks for nothing: the command is named by its path.
    there = (place for place in command_places(manifest) if inside(root, place) is not None)
    command, *words = manifest.command
    return (REAPER_INSIDE, next(there, command), *words)


def check_command(manifest: ImageManifest, root: Path) -> None:
    """See that what is to be run is in the image.

    Raises:
        Refused: it is not.
    """
    for place in command_places(manifest):
        found = inside(root, place)
        if found is not None and found.is_file() and found.stat().st_mode & 0o111:
            return
    raise Refused(
        f"image {manifest.name} has no {manifest.command[0]} that can be run: give it an init, or"
        " name one in its recipe by CMD or ENTRYPOINT"
    )


def inside(root: Path, path: str) -> Path | None:
    """Where a path of an image leads, whose links are followed as they are seen from inside."""
    place, left = root, [one for one in path.split("/") if one][::-1]
    for _ in range(LINKS_MAX + len(left)):
        if not left:
            return place if place.exists() else None
        one = left.pop()
        if one == "..":
            place = root if place == root else place.parent
        elif one != ".":
            here = place / one
            if here.is_symlink():
                target = str(here.readlink())
                place = root if target.startswith("/") else place
                left += [piece for piece in target.split("/") if piece][::-1]
            else:
                place = here
    return None


def _resources(limits: SystemLimits) -> dict[str, Any]:
    """What the runtime has the kernel hold a system to: its limits, and no devices."""
    found: dict[str, Any] = {"devices": [{"allow": False, "access": "rwm"}]}
    if limits.memory_mb is not None:
        found["memory"] = {"limit": limits.memory_mb << 20}
    if limits.cpu_percent is not None:
        found["cpu"] = {"quota": limits.cpu_percent * CPU_PERIOD_US // 100, "period": CPU_PERIOD_US}
    if limits.pids is not None:
        found["pids"] = {"limit": limits.pids}
    return found


def _mounts(around: SystemSurroundings) -> list[dict[str, Any]]:
    found = [
        mount("/proc", "proc", *QUIET),
        mount("/dev", "tmpfs", "nosuid", "strictatime", "mode=755", "size=64k"),
        mount("/dev/pts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666"),
        mount("/dev/shm", "tmpfs", *QUIET, "mode=1777", "size=64m"),
        mount("/dev/mqueue", "mqueue", *QUIET),
        mount("/sys", "sysfs", *QUIET, "ro"),
        mount("/run", "tmpfs", "nosuid", "nodev", "mode=755", "size=64m"),
        bind(around.jobs, JOBS_INSIDE),
    ]
    if around.reaper is not None:
        found.append(bind(around.reaper, REAPER_INSIDE))
    return [*found, bind(RESOLV, str(RESOLV))] if RESOLV.exists() else found


def mount(place: str, sort: str, *options: str) -> dict[str, Any]:
    """A mount by the runtime, of this sort."""
    return {"destination": place, "type": sort, "source": sort, "options": [*options]}


def bind(source: Path, place: str, *options: str) -> dict[str, Any]:
    """A place of the node that is seen inside; without options, only to be read."""
    said = ["bind", *(options or ("ro", "nosuid", "nodev"))]
    return {"destination": place, "type": "bind", "source": str(source), "options": said}


_SYSTEMD_MOUNTS: Final = (
    mount("/run/lock", "tmpfs", *QUIET, "mode=1777", "size=5m"),
    mount("/sys/fs/cgroup", "cgroup", *QUIET, "rw"),
)
