"""What is kept of a session with a neighbour, so that a restart costs no handshake."""

from dataclasses import dataclass

from haptera.wire.seal import Agreement


@dataclass(frozen=True, slots=True)
class SavedSession:
    """One session, as either side keeps it.

    `peer` is the neighbour's name: a node's, or PARENT on the node. `address` is where its
    datagrams are sent, `peer_boot` its last boot-id taken up: None before its first accepted hello.
    """

    peer: str
    agreement: Agreement
    address: tuple[str, int]
    peer_boot: int | None = None
