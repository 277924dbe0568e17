"""What is kept of a session with a neighbour, so that a restart costs no handshake."""

from dataclasses import dataclass, field
from typing import Final

SECRET_BYTES: Final = 32
# A node's own peer, under whatever name it goes elsewhere.
PARENT: Final = "parent"
CHACHA20_POLY1305: Final = 1


@dataclass(frozen=True, slots=True)
class SavedSession:
    """One session, as either side keeps it.

    `peer` is the neighbour's name: a node's, or PARENT on the node. `uuid` (the node's, on both
    sides), `incarnation` and the cluster's UUID go into the keys. `own_index` is the receiver index
    that the neighbour writes to us, `peer_index` the one that we write to it. `address` is where
    it is reached; `peer_boot` its boot-id once taken up, None before its first accepted hello.
    """

    peer: str
    uuid: str
    incarnation: int
    secret: bytes = field(repr=False)
    own_index: int
    peer_index: int
    address: tuple[str, int]
    suite: int = CHACHA20_POLY1305
    peer_boot: int | None = None
