"""`haptera channels`: run the server that carries the channels of groups."""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from haptera.cli.verb import unwatched
from haptera.kinds.host_port import HostPort
from haptera.model.errors import Code, HapteraError
from haptera.runtime.identity.cluster_uris import any_node_uri
from haptera.runtime.identity.pki import cluster_of
from haptera.sdk.uplink import CHANNELS, Uplink, uplink

SERVER: Final = "nats-server"
CONFIGURATION: Final = "nats.conf"
STREAMS: Final = "streams"
# How often it is looked whether the node's certificate was renewed.
LOOK_EVERY_S: Final = 10.0
# What all streams may take together; a new one that does not fit is refused.
STORE_BYTES_MAX: Final = 64 << 30
_CONFIGURATION: Final = """\
listen: "{listen}"
server_name: "{name}"
max_payload: 1MB
jetstream {{ store_dir: {streams}, max_memory_store: 64MB, max_file_store: {store} }}
tls {{
  cert_file: {identity}, key_file: {identity}, ca_file: {ca}, timeout: 5
  verify_and_map: true  # who calls is the user whose name is in its certificate
}}
authorization {{ users: [ {{
  user: "{nodes}"
  permissions: {{
    publish: [{publish}]
    subscribe: [{subscribe}]
    allow_responses: true
  }}
}} ] }}
"""
# What a node's module says to the server, and hears from it and from other nodes; nothing else is
# allowed: to end a stream, to remove its messages, or to listen to one beside its readers.
_PUBLISH: Final = (
    *(f"$JS.API.STREAM.{what}.*" for what in ("CREATE", "UPDATE", "INFO", "MSG.GET")),
    *("$JS.API.CONSUMER.CREATE.*", "$JS.API.CONSUMER.MSG.NEXT.*.*"),
    *("out.*", "out.*.*", "state.*.*", "suppliers.*", "supply.*.*"),
)
_SUBSCRIBE: Final = ("_INBOX.>", "suppliers.*", "supply.*.*")


@click.group("channels")
def channels() -> None:
    """Carry the channels of groups."""


@channels.command("serve")
@unwatched("it ends with its server; `haptera get --watch replica` shows it")
@click.argument("directory", type=click.Path(path_type=Path))
def serve(directory: Path) -> int:
    r"""Run a NATS server that carries channels, and keep its streams in DIRECTORY.

    To be used as the command of a group that has a port. It serves the nodes of this cluster, at
    the address of its node. DIRECTORY must be where a restart of the node leaves
    it, or messages that no group has heard yet are lost with it.

    \b
    Examples:
      haptera channels serve /var/lib/haptera/channels
      haptera channels serve ../../streams
    """
    try:
        run_dir = Path(os.environ["HAPTERA_LEASE"]).parents[1]
        address, port = os.environ["HAPTERA_ADDRESS"], os.environ["HAPTERA_PORT"]
    except KeyError as error:
        raise HapteraError(
            f"{error.args[0]} is not set",
            do="run it as the command of a group that has a port, on nodes that have an address",
            code=Code.MISSING,
        ) from None
    said = uplink(run_dir / CHANNELS)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    configuration = directory / CONFIGURATION
    configuration.write_text(_configuration(directory, said, address, port), "utf-8")
    return _run(configuration, Path(said.identity))


def _configuration(directory: Path, said: Uplink, address: str, port: str) -> str:
    authority = directory / "ca.pem"
    authority.write_bytes(said.ca_pem)
    return _CONFIGURATION.format(
        listen=HostPort(address, int(port)),
        name=f"haptera-{address}",
        streams=_quoted(directory / STREAMS),
        store=STORE_BYTES_MAX,
        identity=_quoted(said.identity),
        ca=_quoted(authority),
        nodes=any_node_uri(cluster_of(said.ca_pem)),
        publish=_list(_PUBLISH),
        subscribe=_list(_SUBSCRIBE),
    )


def _list(subjects: Sequence[str]) -> str:
    return ", ".join(f'"{one}"' for one in subjects)


def _quoted(path: Path | str) -> str:
    return f'"{Path(path).absolute()}"'


def _run(configuration: Path, identity: Path) -> int:
    """Run the server, and have it read the certificate again when that was renewed."""
    try:
        process = subprocess.Popen([SERVER, "-c", str(configuration)])
    except FileNotFoundError:
        raise HapteraError(
            f"there is no {SERVER} on this node",
            do=f"install Debian's package {SERVER}",
            code=Code.NOT_INSTALLED,
        ) from None
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    known = identity.read_bytes()
    while True:
        try:
            return process.wait(LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            if (now := identity.read_bytes()) != known:
                known = now
                process.send_signal(signal.SIGHUP)
