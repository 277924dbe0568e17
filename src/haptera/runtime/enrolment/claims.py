"""The messages of an enrolment: one claim, one answer, each a frame."""

import asyncio
from enum import StrEnum
from typing import Annotated, Final

import msgspec

from haptera.runtime.identity.tokens import Token
from haptera.runtime.network.one_frame import hear
from haptera.runtime.processes.own_modules import OwnModule
from haptera.wire.seal import Agreement

SAID_BYTES_MAX: Final = 64 * 1024

Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class EnrolmentRefusal(StrEnum):
    """All that a claimant learns; the parent's log says more."""

    TOKEN = "token"
    CLAIM = "claim"  # not a claim that this parent understands
    LATER = "later"  # it cannot be written down now; try again


class EnrolmentClaim(msgspec.Struct, frozen=True, tag="claim"):
    """The token, a certificate request in PEM, and the port that datagrams may be sent to."""

    token: Token
    request: bytes
    hello_port: Port


class Granted(msgspec.Struct, frozen=True, tag="granted"):
    """What makes its receiver the node's agent, in a new incarnation; certificates in PEM."""

    node: str
    certificate: bytes
    ca: bytes
    agreement: Agreement
    hello_port: Port
    hello_ms: int
    modules: tuple[str, ...]
    own: tuple[OwnModule, ...] = ()
    parents: tuple[str, ...] = ()


class EnrolmentRefused(msgspec.Struct, frozen=True, tag="refused"):
    reason: EnrolmentRefusal


Said = EnrolmentClaim | Granted | EnrolmentRefused


async def hear_said(reader: asyncio.StreamReader) -> Said | None:
    """The first thing said; None where the other side hangs up, or says what is none of these."""
    said: Said | None = await hear(reader, Said, SAID_BYTES_MAX)
    return said
