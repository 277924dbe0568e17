"""Sessions with neighbours, kept so that a restart costs no handshake."""

from dataclasses import dataclass

from haptera.wire.seal import Agreement


@dataclass(frozen=True, slots=True)
class SavedSession:
    """One session, as either side keeps it.

    `peer` is the neighbour's name: a node's, or PARENT on the node. `address` is where its
    datagrams are sent, `peer_boot` its last boot-id taken up: None before its first accepted hello.
    `level` is how its token reached it, as far as the parent knows: one of `EnrolmentLevel`, or of
    a later version's.
    """

    peer: str
    agreement: Agreement
    address: tuple[str, int]
    peer_boot: int | None = None
    level: str | None = None
