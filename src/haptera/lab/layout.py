"""What a lab is made of: its cluster, its nodes, their addresses and their places on the disk."""

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

from haptera.lab.machine_bmc import Language, Nic
from haptera.lab.orders import CloudFaults, GivenFaults
from haptera.model.entity import check_name
from haptera.model.errors import DuplicateError, HapteraError, LimitError, ParseError
from haptera.runtime.identity.private import private_directory, write_private

OCTET_MAX: Final = 254
BMC_PORT: Final = 4280
BMC_SECRET: Final = "bmc"
NODES_MAX: Final = 254
# A labnode step says that its effect comes within two seconds (its `late_s`); a lab keeps to it.
DELAY_MS_MAX: Final = 1_800
BOOT_MS_MAX: Final = 600_000
MEMORY_MB_MIN: Final = 128
MEMORY_MB_MAX: Final = 16_384
_MAC: Final = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
# Clusters tried before giving up on an octet that no other lab on this machine uses.
DRAWS_MAX: Final = 64

# A fork target, as the zygote knows them: package.module:function.
_TARGET: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class LabNode:
    """One virtual node: its name, addresses and manners.

    `delay_ms` is how long after its acceptance a power command takes effect, `boot_ms` how long
    the agent takes to start after power is on; with `refuse` the BMC refuses all commands so;
    `faults` are those that are given beside these two, and count before them.
    """

    name: str
    address: str
    bmc: str
    delay_ms: int = 300
    boot_ms: int = 0
    refuse: str | None = None
    faults: GivenFaults = field(default_factory=GivenFaults)

    def __post_init__(self) -> None:
        check_name(self.name)
        loopback(self.address, where=f"node {self.name}, address")
        parse_bmc(self.bmc, where=f"node {self.name}, bmc")
        _within(f"node {self.name}, delay_ms", self.delay_ms, DELAY_MS_MAX)
        _within(f"node {self.name}, boot_ms", self.boot_ms, BOOT_MS_MAX)


@dataclass(frozen=True, slots=True)
class LabMachine:
    """One virtual machine: its network card, the BMC in front of it, and its firmware."""

    name: str
    mac: str
    bmc: str
    memory_mb: int
    uefi: bool = False
    language: Language = Language.IPMI
    nic: Nic = Nic.VIRTIO

    def __post_init__(self) -> None:
        check_name(self.name)
        parse_bmc(self.bmc, where=f"node {self.name}, bmc")
        if _MAC.fullmatch(self.mac) is None:
            raise ParseError(f"{self.mac!r} is not a MAC address", where=f"node {self.name}, mac")
        if not MEMORY_MB_MIN <= self.memory_mb <= MEMORY_MB_MAX:
            raise HapteraError(
                f"{self.memory_mb} MB are not between {MEMORY_MB_MIN} and {MEMORY_MB_MAX}",
                where="site file, lab.memory_mb",
            )


@dataclass(frozen=True, slots=True)
class LabConfig:
    """A whole lab. `parent` and `agent` are what its processes run, as fork targets.

    `parent_arguments` are handed to the parent as they are, beside those that the lab makes.
    With `cloud` it has a small cloud besides, which begins with these faults.
    """

    directory: Path
    cluster: UUID
    nodes: tuple[LabNode, ...]
    parent: str = "haptera.daemon:serve_process"
    agent: str = "haptera.daemon:agent_process"
    parent_arguments: Mapping[str, Any] = field(default_factory=dict)
    machines: tuple[LabMachine, ...] = ()
    bmc_user: str = ""
    cloud: CloudFaults | None = None

    def __post_init__(self) -> None:
        if len(self.nodes) > NODES_MAX:
            raise LimitError(
                f"{len(self.nodes)} nodes are more than a lab's {NODES_MAX}", where="lab"
            )
        for what in ("name", "address", "bmc"):
            values = [getattr(node, what) for node in self.nodes]
            values += [getattr(one, what) for one in self.machines if what != "address"]
            if twice := sorted({value for value in values if values.count(value) > 1}):
                raise DuplicateError(f"two nodes have the {what} {', '.join(twice)}", where="lab")
        for target in self.targets:
            if _TARGET.fullmatch(target) is None:
                raise ParseError(f"{target!r} is no target", do="write package.module:function")

    @property
    def targets(self) -> tuple[str, str]:
        return self.parent, self.agent

    @property
    def places(self) -> "Places":
        return Places(self.directory)

    @property
    def parent_address(self) -> str:
        return f"127.{octet(self.cluster)}.0.1"


@dataclass(frozen=True, slots=True)
class Places:
    """Where everything of a lab lies: below `.haptera` of its directory, and nowhere else."""

    directory: Path

    @property
    def root(self) -> Path:
        return self.directory / ".haptera"

    @property
    def client(self) -> Path:
        return self.root / "client.json"

    @property
    def lab(self) -> Path:
        return self.root / "lab"

    @property
    def shared(self) -> Path:
        """What all nodes see, as a disk that they share: for what runs on them."""
        return self.root / "shared"

    @property
    def parent(self) -> Path:
        return self.root / "parent"

    @property
    def bmc_password(self) -> Path:
        """What the lab's BMCs have of the parent's secret `bmc`."""
        return self.lab / BMC_SECRET

    def node(self, name: str) -> Path:
        return self.root / "nodes" / name


def open_cluster(places: Places) -> UUID:
    """The UUID of the cluster in this directory; a new one, apart from other labs, at first.

    Raises:
        HapteraError: the file that should hold it holds something else, or there is no room.
    """
    private_directory(places.root)
    private_directory(places.lab)
    file = places.lab / "cluster"
    try:
        return UUID(file.read_text(encoding="ascii").strip())
    except FileNotFoundError:
        cluster = _draw_cluster()
    except ValueError as error:
        raise HapteraError(
            "holds no UUID", where=str(file), do=f"delete {places.root} to begin a new cluster"
        ) from error
    write_private(file, f"{cluster}\n".encode())
    return cluster


def octet(cluster: UUID) -> int:
    """The second octet of all addresses of this cluster's lab.

    >>> octet(UUID(int=0)), octet(UUID(int=254))
    (1, 1)
    """
    return cluster.int % OCTET_MAX + 1


def loopback(text: str, *, where: str) -> str:
    """Return `text` where it is an address of this machine only.

    Raises:
        HapteraError: it is not.
    """
    try:
        if IPv4Address(text).is_loopback:
            return text
    except AddressValueError:
        pass
    raise ParseError(f"{text!r} is not a loopback address", where=where, do="write 127.X.Y.Z")


def parse_bmc(text: str, *, where: str) -> tuple[str, int]:
    """Read ADDRESS:PORT.

    Raises:
        HapteraError: it is not, or the address is not of this machine only.
    """
    address, _, port = text.rpartition(":")
    if not re.fullmatch(r"[1-9][0-9]{0,4}", port) or int(port) > 65535:
        raise ParseError(f"{text!r} is not ADDRESS:PORT", where=where)
    return loopback(address, where=where), int(port)


def _draw_cluster() -> UUID:
    for _ in range(DRAWS_MAX):
        cluster = uuid4()
        if _is_free(f"127.{octet(cluster)}.2.1"):
            return cluster
    raise HapteraError("other labs use the addresses of this machine", do="stop one of them")


def _is_free(address: str) -> bool:
    """Whether no BMC of another lab listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, BMC_PORT))
        except OSError:
            return False
    return True


def _within(where: str, value: int, value_max: int) -> None:
    if not 0 <= value <= value_max:
        raise HapteraError(f"{value} is not between 0 and {value_max}", where=where)
