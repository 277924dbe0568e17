"""Devices by their names in the Container Device Interface: what the node's vendors say of each.

A name is `vendor.com/class=name`; specifications are files in JSON, which vendors' programs write.
Their hooks are not run: these change the root of a container, and a job's is read-only.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from haptera.model.foreign import Foreign, ForeignError, read_foreign
from haptera.modules.regular import open_regular
from haptera.modules.system.bundle import bind
from haptera.sdk import Refused

# The later one goes before, as the interface has it.
FOLDERS: Final = (Path("/etc/cdi"), Path("/var/run/cdi"))
SPEC_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Edits:
    """The additions to a container: its variables, and its devices and places as mounts."""

    env: tuple[str, ...] = ()
    binds: tuple[dict[str, Any], ...] = ()


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
        OSError: one is not known here, or described in a way that cannot be read.
    """
    odd: list[str] = []
    known = {name: said for name, *said in _devices(folders, odd)}
    found: list[Edits] = []
    for name in names:
        if name not in known:
            places = " and ".join(map(str, folders))
            what = f"no device {name} is known on this node, by files *.json in {places}"
            raise OSError("; ".join([what, *odd]))
        try:
            of_all, own = map(_edits, known[name])
        except ForeignError as error:
            raise OSError(str(error)) from None
        found += [of_all] * (of_all not in found)
        found.append(own)
    return found


def _devices(folders: Iterable[Path], odd: list[str]) -> Iterator[tuple[str, Foreign, Foreign]]:
    """Each device by its name, with the additions for all of its kind and its own ones.

    What cannot be read hides nothing else, and is noted.
    """
    for place in (place for folder in folders for place in sorted(folder.glob("*.json"))):
        with _noted(odd), open_regular(place) as file:
            told = read_foreign(str(place), file.read(SPEC_BYTES_MAX))
            kind, of_all = told["kind"].need().text(), told["containerEdits"]
            for one in told["devices"].items():
                with _noted(odd):
                    yield f"{kind}={one['name'].need().text()}", of_all, one["containerEdits"]


@contextmanager
def _noted(odd: list[str]) -> Iterator[None]:
    try:
        yield
    except (OSError, Refused, ForeignError) as error:
        odd.append(str(error))


def _edits(told: Foreign) -> Edits:
    nodes = [
        device(one["hostPath"].text() or _place(one["path"]), _place(one["path"]))
        for one in told["deviceNodes"].items()
    ]
    # Not what else may stand there: nothing that is mounted has more rights than a folder.
    mounts = [
        shown(
            _place(one["hostPath"]),
            _place(one["containerPath"]),
            writable="rw" in one["options"].words(),
        )
        for one in told["mounts"].items()
    ]
    return Edits(told["env"].words(), (*nodes, *mounts))


def _place(told: Foreign) -> str:
    return told.need().text() or ""
