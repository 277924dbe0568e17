"""The check of a claim of a one-time token: only the node that it is bound to may make it."""

from dataclasses import dataclass, field
from enum import StrEnum


class AdmissionReason(StrEnum):
    """Why a claim is refused; for the log, never for the one who claims."""

    UNKNOWN = "unknown"  # no such token, or the wrong secret
    EXPIRED = "expired"
    DOUBLE = "double claim"  # another key has it
    SPENT = "spent"  # the same key again, but its session is already in use or replaced


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A token whose secret was shown; `claimed_by` is the public key that has claimed it.

    `spent` says that the session made for that claim was heard from, or followed by another.
    """

    id: str
    node: str
    expires_s: float
    claimed_by: bytes | None = field(default=None, repr=False)
    spent: bool = False


@dataclass(frozen=True, slots=True)
class Admit:
    """A first claim: make an incarnation and a session for the node."""

    node: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same claim again, for the answer may have been lost: give the same answer."""

    node: str


@dataclass(frozen=True, slots=True)
class Refuse:
    reason: AdmissionReason


def admit(token: TokenRow | None, public_key: bytes, wall_s: float) -> Admit | Repeat | Refuse:
    """Decide on a claim.

    >>> admit(TokenRow("t", "n01", expires_s=600.0), b"key", wall_s=0.0)
    Admit(node='n01')
    """
    if token is None:
        return Refuse(AdmissionReason.UNKNOWN)
    if wall_s >= token.expires_s:
        return Refuse(AdmissionReason.EXPIRED)
    if token.claimed_by is None:
        return Admit(token.node)
    if token.claimed_by != public_key:
        return Refuse(AdmissionReason.DOUBLE)
    if token.spent:
        return Refuse(AdmissionReason.SPENT)
    return Repeat(token.node)
