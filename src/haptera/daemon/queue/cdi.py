"""Devices by their names in the Container Device Interface: what the node's vendors say of each.

A name is `vendor.com/class=name`; specifications are files in JSON, which vendors' programs write.
Their hooks are not run: these change the root of a container, and a job's is read-only.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.modules.system.bundle import bind

# The later one goes before, as the interface has it.
FOLDERS: Final = (Path("/etc/cdi"), Path("/var/run/cdi"))
SPEC_BYTES_MAX: Final = 1 << 20


class DeviceNode(msgspec.Struct, frozen=True, rename="camel"):
    """A device file, and where it is on the node if elsewhere."""

    path: str
    host_path: str | None = None


class CdiMount(msgspec.Struct, frozen=True, rename="camel"):
    """A place of the node that is seen inside."""

    host_path: str
    container_path: str
    options: tuple[str, ...] = ()


class Edits(msgspec.Struct, frozen=True, rename="camel"):
    """The additions to a container."""

    env: tuple[str, ...] = ()
    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[CdiMount, ...] = ()

    def binds(self) -> Iterator[dict[str, Any]]:
        """Its devices and places, as the runtime mounts them."""
        for node in self.device_nodes:
            yield device(node.host_path or node.path, node.path)
        for one in self.mounts:
            # Not what else may stand there: nothing that is mounted has more rights than a folder.
            yield shown(one.host_path, one.container_path, writable="rw" in one.options)


class CdiDevice(msgspec.Struct, frozen=True, rename="camel"):
    """One device of a kind."""

    name: str
    container_edits: Edits = Edits()


class CdiSpec(msgspec.Struct, frozen=True, rename="camel"):
    """All devices of a kind, and what a container gets for any of them."""

    kind: str
    devices: tuple[CdiDevice, ...] = ()
    container_edits: Edits = Edits()


def device(source: str, target: str) -> dict[str, Any]:
    """A device file that is seen inside."""
    return bind(Path(source), target, "rw", "nosuid", "noexec")


def shown(source: str, target: str, *, writable: bool) -> dict[str, Any]:
    """A place of the node that is seen inside; what is forbidden there, nobody may allow here."""
    mode = "rw" if writable else "ro"
    return bind(Path(source), target, "rbind", mode, "nosuid", "nodev", *_forbidden(source))


def _forbidden(source: str) -> Iterator[str]:
    """The flags of the mount that holds a place; the runtime reports a missing one."""
    with suppress(OSError):
        if os.statvfs(source).f_flag & os.ST_NOEXEC:
            yield "noexec"


def edits(names: Iterable[str], folders: Iterable[Path] = FOLDERS) -> list[Edits]:
    """The additions to a container for these devices, and once for each kind of them.

    Raises:
        OSError: one is not known here.
    """
    specs = [*_specs(folders)]
    found: list[Edits] = []
    for name in names:
        kind, _, wanted = name.partition("=")
        known = (
            (spec, one)
            for spec in reversed(specs)
            for one in spec.devices
            if (spec.kind, one.name) == (kind, wanted)
        )
        match next(known, None):
            case None:
                places = " and ".join(map(str, folders))
                raise OSError(
                    f"no device {name} is known on this node, by files *.json in {places}"
                )
            case (spec, one):
                found += [spec.container_edits] * (spec.container_edits not in found)
                found.append(one.container_edits)
    return found


def _specs(folders: Iterable[Path]) -> Iterator[CdiSpec]:
    """The content of a file; an unreadable one has no devices."""
    for folder in folders:
        for place in sorted(folder.glob("*.json")):
            try:
                with place.open("rb") as file:
                    yield msgspec.json.decode(file.read(SPEC_BYTES_MAX), type=CdiSpec)
            except (OSError, ValueError, msgspec.MsgspecError):
                continue
