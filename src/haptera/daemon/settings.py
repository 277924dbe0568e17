"""What one parent is started with."""

from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import Final

import msgspec

from haptera.model.answers.plan import RADIUS_PERCENT
from haptera.model.errors import HapteraError
from haptera.runtime.processes.controllers import ControllerPlace
from haptera.runtime.processes.places import ModulePlace
from haptera.runtime.samples.limits import SampleLimits

API_PORT: Final = 4270
# A file beside the state of a parent that was promoted, while its predecessor's steps may take
# effect.
PROMOTED: Final = "promoted"
HELLO_MS: Final = 5_000


class Ways(msgspec.Struct, frozen=True):
    """The ways in to a parent's API.

    It is served at the address `api`, by default where nodes reach the parent: with TLS, but at
    an IPv4 loopback address. `hosts` are names that it has besides. On a Unix `socket`, by default
    beside the client file, it is open to root, to the parent's own user, and to whom `let_in` says.
    """

    api: str | None = None
    hosts: tuple[str, ...] = ()
    socket: str | None = None
    let_in: tuple[str, ...] = ()


WAYS: Final = Ways()
SAMPLES: Final = SampleLimits()


class ParentSettings(msgspec.Struct, frozen=True):
    """One parent: where its files are, where it is reached, what it is called, what it runs.

    Nodes reach it at `address`, people and programs by the `ways`; `client` is the file that lets
    a CLI in. A first start takes `cluster` as the cluster's UUID, or makes one. A `site` file is
    applied at the start. More than `radius_percent` of the nodes are not disrupted by what comes
    over the API without the digest of its plan. Modules are users of their own where the parent is
    root, but those that `keep_user` names; None: all keep its user. A
    parent below others is called `parent_name` in nodes' lists; `above` are the client files of
    those that it may follow. `etcd` are files of endpoints, where its lease is kept. `samples` says
    how much of the numbers that machines report is kept.
    """

    directory: str
    address: str
    client: str
    name: str
    cluster: str | None = None
    modules: tuple[str, ...] = ("jobs", "labnode", "service")
    controllers: tuple[ControllerPlace, ...] = ()
    own: tuple[ModulePlace, ...] = ()
    hello_ms: int = HELLO_MS
    api_port: int = API_PORT
    constants: dict[str, str] = {}
    site: str | None = None
    ways: Ways = WAYS
    radius_percent: int = RADIUS_PERCENT
    keep_user: tuple[str, ...] | None = None
    parent_name: str | None = None
    above: tuple[str, ...] = ()
    etcd: tuple[str, ...] = ()
    samples: SampleLimits = SAMPLES


def home_of(directory: Path) -> Path:
    """Where a parent's state is, below the directory that it is given."""
    return directory.resolve() / ".haptera" / "parent"


def check_address(address: str, option: str = "--listen") -> None:
    """Refuse what is no address of a machine, at which the others of its cluster could reach it.

    Raises:
        HapteraError: it is none.
    """
    try:
        sound = not IPv4Address(address).is_unspecified
    except AddressValueError:
        sound = False
    if not sound:
        raise HapteraError(
            "nodes and their parent reach each other at one IPv4 address, and this is not one",
            where=f"{option} {address}",
            do="give an address of this machine; 127.0.0.1 if the nodes are on it too",
        )
