"""Sessions with neighbours, kept so that a restart costs no handshake."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated

from msgspec import Meta

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
    address: tuple[str, Annotated[int, Meta(ge=1, lt=1 << 16)]]
    peer_boot: Annotated[int, Meta(ge=0)] | None = None
    level: str | None = None

    def __post_init__(self) -> None:
        # A name would be looked up with each datagram.
        ip_address(self.address[0])
