"""The enrolment of machines that boot here or already run, as JSON over the API."""

import msgspec

from haptera.model.text import Line


class UnclaimedView(msgspec.Struct, frozen=True):
    """A machine that asked for an address, and is no node's; times are seconds since 1970.

    What it did not say of itself is null.
    """

    mac: str
    firmware: str | None
    vendor: str | None
    asked: int
    first_s: float
    last_s: float


class Unclaimed(msgspec.Struct, frozen=True):
    """Machines that are no node's, the latest first."""

    machines: list[UnclaimedView]


class ClaimBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The network card of the machine that is to be a node."""

    mac: Line


class ClaimMade(msgspec.Struct, frozen=True):
    """Which machine a node is now, and who declares the node: there the MAC address belongs."""

    node: str
    mac: str
    owner: str


class InvitationView(msgspec.Struct, frozen=True):
    """An agent's invitation, for one enrolment in ten minutes: token, authority, ADDRESS:PORT."""

    token: str
    ca: str
    parent: str

    def __repr__(self) -> str:
        """Without what would let a reader of logs in."""
        return f"InvitationView({self.parent!r})"
