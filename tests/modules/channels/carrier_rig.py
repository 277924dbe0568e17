"""A server of channels as a node runs it, by `haptera channels serve`, and certificates for it."""

import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import msgspec
from cryptography import x509

from haptera.kinds.host_port import HostPort
from haptera.modules.replica.channels.serving import identity_shown
from haptera.runtime.clock import wall_s
from haptera.runtime.identity.pki import (
    Authority,
    issue_node,
    key_pem,
    make_request,
    new_key,
    open_authority,
    parse_request,
)
from haptera.sdk.uplink import CHANNELS, UPLINK, Uplink
from tests.kills.processes import wait_for
from tests.modules.channels.nats_rig import answers

Issue = Callable[[Authority, x509.CertificateSigningRequest], bytes]


def node_at(host: str, number: int = 1) -> Issue:
    """A certificate as a parent issues it for a node with this address."""
    return lambda authority, request: issue_node(
        authority, request, UUID(int=number), 1, host, wall_s()
    )


class CarrierNode:
    """A node's run directory with an identity: what its modules know of it."""

    def __init__(self, directory: Path, authority: Authority, issue: Issue) -> None:
        self.run_dir = directory
        self.identity = directory / CHANNELS / "identity.pem"
        self.identity.parent.mkdir(parents=True)
        self._authority = authority
        self.take(issue)
        ca = authority.ca_pem.decode("ascii")
        said = Uplink("127.0.0.1", 4270, ca, str(self.identity))
        (directory / CHANNELS / UPLINK).write_bytes(msgspec.json.encode(said))

    def take(self, issue: Issue) -> None:
        """Have another certificate from now on."""
        key = new_key()
        request = parse_request(make_request(key))
        assert request is not None
        self.identity.write_bytes(key_pem(key) + issue(self._authority, request))

    @property
    def tls(self) -> ssl.SSLContext:
        return identity_shown(self.run_dir)


class CarrierCluster:
    """An authority, and nodes of its cluster."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.authority = open_authority(directory / "pki", wall_s())

    def node(self, name: str, issue: Issue) -> CarrierNode:
        return CarrierNode(self._directory / name, self.authority, issue)


@contextmanager
def served(node: CarrierNode, address: str, directory: Path) -> Iterator[None]:
    """Run the server on this node, as a replica of a group does."""
    place = HostPort.parse(address, None)
    environment = os.environ | {
        "HAPTERA_LEASE": str(node.run_dir / "leases" / "streams"),
        "HAPTERA_ADDRESS": place.host,
        "HAPTERA_PORT": str(place.port),
    }
    command = [sys.executable, "-m", "haptera", "channels", "serve", str(directory)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait_for("the server answers", lambda: answers(address), within_s=60)
        yield
    finally:
        process.terminate()
        process.wait()
