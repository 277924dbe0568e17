"""One end of a session: seals what goes out, opens what comes in, and knows what is too old.

Pure: boot-ids, secrets and `now` are handed in, bytes come out.

Old processes never return. A process that is dead can echo only sequences that we had sent while
it lived; when its successor is taken up we note how far we have sent, and take up nobody who echoes
no more than that. So no list of all old boot-ids is needed. Nor is one after our own restart: then
each echo must name our new boot-id, which no datagram from before holds. The short list of retired
boot-ids is against a process that is *not* dead (a cloned disk), and spares us deriving keys for
replays.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from struct import Struct
from typing import Annotated, Final
from uuid import UUID

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from haptera.wire.bucket import Bucket
from haptera.wire.frame import (
    BODY_BYTES_MAX,
    HEADER_BYTES,
    KEY_EPOCH,
    DatagramType,
    FrameFault,
    Header,
    Reject,
    Suite,
    pack_header,
    parse_header,
)
from haptera.wire.window import Window

SECRET_BYTES: Final = 32
# Of each origin: who forges boot-ids elsewhere leaves what it needs to one that is restarted.
DERIVATIONS_PER_S_MAX: Final = 400
GREETS_PER_S_MAX: Final = 4
RETIRED_MAX: Final = 16

# As the header has it.
Index = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]

_NONCE: Final = Struct(">IQ")
_ECHO: Final = Struct(">QQ")
# Direction, suite, key epoch, sender boot-id, incarnation; then the node's and cluster's UUIDs.
_INFO: Final = Struct(">cBBQQ")
_INFO_LABEL: Final = b"haptera datagram 1"
_UP: Final = b"u"
_DOWN: Final = b"d"

_Cipher = ChaCha20Poly1305 | AESGCM


class SealRole(StrEnum):
    """Which end of a session this is."""

    PARENT = "parent"
    CHILD = "child"


@dataclass(frozen=True, slots=True)
class Agreement:
    """What enrolment gave both ends alike, and both keep.

    Each end puts the other's receiver index into what it sends.
    """

    secret: bytes = field(repr=False)
    cluster: UUID
    node: UUID
    incarnation: Annotated[int, msgspec.Meta(ge=0)]
    parent_index: Index
    child_index: Index
    suite: Suite = Suite.CHACHA20_POLY1305

    def __post_init__(self) -> None:
        if len(self.secret) != SECRET_BYTES:
            raise ValueError(f"a session's secret has {SECRET_BYTES} bytes")


class Opened(msgspec.Struct, frozen=True, gc=False):
    """An authentic datagram that was not accepted before, from the process `boot`.

    `new_boot`: the first one accepted from that process. `late`: one sent after it was accepted
    before it.
    """

    type: DatagramType
    body: bytes
    boot: int
    new_boot: bool
    late: bool


class Greet(msgspec.Struct, frozen=True, gc=False):
    """An authentic datagram whose echo does not fit: it changed nothing; say `hi`, echoing it."""

    boot: int
    sequence: int


@dataclass(slots=True)
class _Peer:
    """A process of the other end: how to open what it seals, and what was accepted of it.

    Its cipher is made when it is first heard: a parent that starts has thousands of these.
    """

    boot: int
    cipher: _Cipher | None = None
    window: Window = field(default_factory=Window)


class Origin(StrEnum):
    """Where a datagram came from, as far as its sender's address tells."""

    ON_RECORD = "on record"
    ELSEWHERE = "elsewhere"


class Session:
    """One end of a session, for as long as this process lives; sequences start at 1.

    `sent` is the last one of ours, `confirmed` the last one that the other end has shown to hold.
    """

    __slots__ = (
        "_agreement",
        "_candidate",
        "_cipher",
        "_derivations",
        "_greets",
        "_own_boot",
        "_peer",
        "_peer_index",
        "_receive_direction",
        "_retired",
        "_send_direction",
        "_sent_at_last_accepted",
        "confirmed",
        "own_index",
        "sent",
    )

    def __init__(
        self, agreement: Agreement, role: SealRole, own_boot: int, peer_boot: int | None = None
    ) -> None:
        """`peer_boot` is the last one taken up by our previous process, where one was saved."""
        assert own_boot > 0
        upward = role is SealRole.CHILD
        self.own_index = agreement.child_index if upward else agreement.parent_index
        self._peer_index = agreement.parent_index if upward else agreement.child_index
        self._agreement = agreement
        self._receive_direction = _DOWN if upward else _UP
        self._own_boot = own_boot
        self._send_direction = _UP if upward else _DOWN
        self._cipher: _Cipher | None = None
        self.sent = 0
        self.confirmed = 0
        self._sent_at_last_accepted = 0
        self._peer = None if peer_boot is None else _Peer(peer_boot)
        self._candidate: _Peer | None = None
        self._retired: tuple[int, ...] = ()
        self._derivations = {
            origin: Bucket(DERIVATIONS_PER_S_MAX, DERIVATIONS_PER_S_MAX) for origin in Origin
        }
        self._greets = Bucket(GREETS_PER_S_MAX, GREETS_PER_S_MAX)

    @property
    def peer_boot(self) -> int | None:
        """The process on record at the other end."""
        return None if self._peer is None else self._peer.boot

    def seal(self, body: bytes) -> bytes:
        """A hello with this body, to be sent once: sealing it again gives it a new sequence."""
        peer = self._peer
        echo = _ECHO.pack(0, 0) if peer is None else _ECHO.pack(peer.boot, peer.window.highest)
        return self._sealed(DatagramType.HELLO, echo + body)

    def seal_hi(self, greet: Greet) -> bytes:
        """The empty `hi` that this unfitting datagram is answered with."""
        return self._sealed(DatagramType.HI, _ECHO.pack(greet.boot, greet.sequence))

    def open(
        self, datagram: bytes, now: int, origin: Origin = Origin.ON_RECORD
    ) -> Opened | Greet | Reject:
        """Accept a datagram for `own_index`, ask for a `hi`, or refuse it and change nothing."""
        header = parse_header(datagram)
        if isinstance(header, Reject):
            return header
        if header.receiver != self.own_index:
            return Reject(FrameFault.INDEX)
        if header.suite is not self._agreement.suite:
            return Reject(FrameFault.SUITE)
        if header.epoch != KEY_EPOCH:
            return Reject(FrameFault.EPOCH)
        peer = self._sender(header, now, origin)
        if isinstance(peer, Reject):
            return peer
        return self._judged(peer, header, datagram, now)

    def _sender(self, header: Header, now: int, origin: Origin) -> _Peer | Reject:
        """The process that the datagram claims to be from, if that is worth a decryption."""
        for peer in (self._peer, self._candidate):
            if peer is not None and peer.boot == header.boot:
                return peer if peer.window.is_fresh(header.sequence) else Reject(FrameFault.SEEN)
        if header.boot in self._retired:
            return Reject(FrameFault.RETIRED)
        if header.boot == 0 or header.sequence == 0:
            return Reject(FrameFault.FORGED)
        if not self._derivations[origin].take(now):
            return Reject(FrameFault.BUDGET)
        return _Peer(header.boot)

    def _judged(
        self, peer: _Peer, header: Header, datagram: bytes, now: int
    ) -> Opened | Greet | Reject:
        if peer.cipher is None:
            peer.cipher = _derive(self._agreement, self._receive_direction, peer.boot)
        try:
            plain = peer.cipher.decrypt(
                _NONCE.pack(0, header.sequence), datagram[HEADER_BYTES:], datagram[:HEADER_BYTES]
            )
        except InvalidTag:
            return Reject(FrameFault.FORGED)
        boot, sequence = _ECHO.unpack_from(plain)
        if not self._fits(peer, boot, sequence):
            if peer is not self._peer:
                self._candidate = peer
            if not self._greets.take(now):
                return Reject(FrameFault.ECHO)
            return Greet(header.boot, header.sequence)
        self.confirmed = max(self.confirmed, sequence)
        return self._accepted(peer, header, plain[_ECHO.size :])

    def _fits(self, peer: _Peer, boot: int, sequence: int) -> bool:
        """Whether what the datagram echoes proves that it was sent by who is alive now."""
        heard_since = 0 if peer is self._peer else self._sent_at_last_accepted
        return boot == self._own_boot and heard_since < sequence <= self.sent

    def _accepted(self, peer: _Peer, header: Header, body: bytes) -> Opened:
        if peer is not self._peer:
            if self._peer is not None:
                self._retired = (*self._retired, self._peer.boot)[-RETIRED_MAX:]
            self._peer = peer
            self._candidate = None
        window = peer.window
        new_boot = window.highest == 0
        late = header.sequence < window.highest
        window.commit(header.sequence)
        self._sent_at_last_accepted = self.sent
        return Opened(header.type, body, peer.boot, new_boot, late)

    def _sealed(self, type_: DatagramType, plain: bytes) -> bytes:
        assert len(plain) <= _ECHO.size + BODY_BYTES_MAX
        if self._cipher is None:
            self._cipher = _derive(self._agreement, self._send_direction, self._own_boot)
        self.sent += 1
        header = pack_header(
            Header(type_, self._agreement.suite, self._peer_index, self._own_boot, self.sent)
        )
        return header + self._cipher.encrypt(_NONCE.pack(0, self.sent), plain, header)


def _derive(agreement: Agreement, direction: bytes, boot: int) -> _Cipher:
    """The key of one process in one direction: new with each process, so no nonce comes twice."""
    info = b"".join(
        (
            _INFO_LABEL,
            _INFO.pack(direction, agreement.suite, KEY_EPOCH, boot, agreement.incarnation),
            agreement.node.bytes,
            agreement.cluster.bytes,
        )
    )
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(agreement.secret)
    if agreement.suite is Suite.AES_256_GCM:
        return AESGCM(key)
    return ChaCha20Poly1305(key)
