"""Where a node's parent serves what is too large for state, as the agent tells its modules."""

from pathlib import Path
from typing import Final

import msgspec

from haptera.kinds.host_port import HostPort
from haptera.model.errors import HapteraError

UPLINK: Final = "uplink.json"
# Below a node's run directory: what the module `replica` may read of this, and what carries
# channels there.
CHANNELS: Final = "channels"


class Uplink(msgspec.Struct, frozen=True):
    """The parent's address for artefacts, the cluster's authority, and this node's identity.

    `identity` is a file with key and certificate, which change while the node runs.
    """

    host: str
    port: int
    ca: str
    identity: str

    def __str__(self) -> str:
        return str(HostPort(self.host, self.port))

    @property
    def ca_pem(self) -> bytes:
        return self.ca.encode("ascii")


def uplink(run_dir: Path) -> Uplink:
    """What the agent keeps there for its modules.

    Raises:
        HapteraError: it keeps nothing.
    """
    place = run_dir / UPLINK
    try:
        return msgspec.json.decode(place.read_bytes(), type=Uplink)
    except (OSError, ValueError, RecursionError) as error:
        raise HapteraError(
            f"the parent's address is not known: {error}",
            where=str(place),
            do="wait until the agent has enrolled",
        ) from None
