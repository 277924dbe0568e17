"""Which cluster a directory is of, so that no other cluster's site file takes it over."""

from pathlib import Path
from typing import Final

import msgspec

from haptera.model.errors import Code, ConflictError, UnreadableError
from haptera.runtime.identity.private import write_durable
from haptera.runtime.processes.controllers import ControllerPlace
from haptera.runtime.processes.own_modules import OwnModule
from haptera.runtime.processes.places import ModulePlace

FILE: Final = "cluster.json"


class ClusterIdentity(msgspec.Struct, frozen=True):
    """The options of a parent's first start, which later ones hold to.

    `described` is what modules of one's own declared when they were last asked.
    """

    name: str
    modules: tuple[str, ...]
    controllers: tuple[ControllerPlace, ...] = ()
    own: tuple[ModulePlace, ...] = ()
    described: tuple[OwnModule, ...] = ()


def read_cluster(home: Path) -> ClusterIdentity | None:
    """The cluster of a parent's directory; None before its first start.

    Raises:
        HapteraError: the file that should hold it holds something else.
    """
    place = home / FILE
    try:
        return msgspec.json.decode(place.read_bytes(), type=ClusterIdentity)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise UnreadableError(
            f"does not name a cluster: {error}", where=str(place), do="restore it from a backup"
        ) from None


def check_cluster(home: Path, name: str) -> None:
    """Refuse a directory that is of another cluster.

    Raises:
        HapteraError: it is.
    """
    known = read_cluster(home)
    if known is not None and known.name != name:
        raise ConflictError(
            f"is of cluster {known.name}, not {name}",
            where=str(home),
            do="give each cluster a directory of its own (--dir)",
            code=Code.WRONG_CLUSTER,
        )


def keep_cluster(home: Path, cluster: ClusterIdentity) -> None:
    """Have the next start know it."""
    if read_cluster(home) != cluster:
        write_durable(home / FILE, msgspec.json.encode(cluster))
