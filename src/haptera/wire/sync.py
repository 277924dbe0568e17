"""A message as the bodies of datagrams: a part that is read without decoding, then sections."""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from haptera.model.messages import (
    Ask,
    Mark,
    Measure,
    Message,
    ObservedFragment,
    Permit,
    RoomAsk,
    Update,
)
from haptera.wire.frame import (
    BODY_BYTES_MAX,
    CONTENT_BYTES_MAX,
    PREFIX_BYTES_MAX,
    PREFIX_WORDS_MAX,
    SECTION_HEADER_BYTES,
    FrameFault,
    Reject,
)
from haptera.wire.measures import MEASURE, decode_measure, encode_measure
from haptera.wire.permits import (
    ASK,
    ASKS_MAX,
    PERMIT,
    ROOM_ASK,
    decode_spoken,
    encode_ask,
    encode_permit,
    encode_room_ask,
)
from haptera.wire.updates import Codec

# Flags, how many words; incarnation, term, schema; epoch, version and digest of both layers.
_PREFIX: Final = Struct(">BB9Q")
_WORDS: Final = tuple(Struct(f">{count}Q") for count in range(PREFIX_WORDS_MAX + 1))
_SECTION: Final = Struct(">BH")
_PROBE: Final = 1
# A further datagram of a message: it says nothing of asks and permits, which are in the first.
_FURTHER: Final = 2
# The sender has fetched the receiver's schema, and reads its packed words.
_READS: Final = 4
# Nothing but what goes beside all messages, which says nothing of the sender's state.
_BESIDE: Final = 8

assert _PREFIX.size + _WORDS[-1].size == PREFIX_BYTES_MAX
assert _SECTION.size == SECTION_HEADER_BYTES


def encode(message: Message, codec: Codec, peer_schema: int | None) -> list[bytes]:
    """The bodies that carry a message: as many as its sections need, each with the fixed part.

    `peer_schema` is the schema digest that the peer last sent, None where it has sent none.
    """
    further = _prefix(message, _FURTHER)
    bodies = [_prefix(message, 0) + _spoken(message)]
    for section, content in _told(message, codec, peer_schema):
        if len(content) > CONTENT_BYTES_MAX + PREFIX_BYTES_MAX - len(further):
            # What is desired was refused where it takes more (`check_size`), packed. A peer of
            # another schema, which plans nothing until it has ours, hears of the largest then.
            continue
        packed = _packed(section, content)
        if len(bodies[-1]) + len(packed) > BODY_BYTES_MAX:
            bodies.append(further)
        bodies[-1] += packed
    return bodies


def decode(body: bytes, codec: Codec, peer: str) -> Message | Reject:
    """Read an authentic body of this neighbour; sections of types unknown to us are skipped."""
    if len(body) < _PREFIX.size:
        return Reject(FrameFault.PREFIX)
    flags, words, incarnation, term, schema, *marks = _PREFIX.unpack_from(body)
    if words > PREFIX_WORDS_MAX or len(body) < _PREFIX.size + 8 * words:
        return Reject(FrameFault.PREFIX)
    told: list[Update | Ask | Permit | RoomAsk | Measure] = []
    for section in _sections(body, _PREFIX.size + 8 * words):
        if isinstance(section, Reject):
            return section
        apart = decode_spoken(*section, peer) or decode_measure(*section)
        one = apart or codec.decode(*section, schema, peer)
        if isinstance(one, Reject):
            return one
        if one is not None:
            told.append(one)
    further = bool(flags & _FURTHER)
    return Message(
        incarnation,
        term,
        schema,
        Mark(*marks[:3]),
        Mark(*marks[3:]),
        _WORDS[words].unpack_from(body, _PREFIX.size),
        tuple(one for one in told if not isinstance(one, Ask | Permit | RoomAsk | Measure)),
        bool(flags & _PROBE),
        None if further else tuple(one for one in told if isinstance(one, Ask)),
        None if further else tuple(one for one in told if isinstance(one, Permit)),
        bool(flags & _READS),
        tuple(one for one in told if isinstance(one, Measure)),
        None if further else tuple(one for one in told if isinstance(one, RoomAsk)),
    )


def beside(told: bytes, section: int, content: bytes) -> bytes:
    """A body with this section alone, for a receiver that was last sent this body.

    One of a version that does not know such bodies reads one that says nothing new.
    """
    size = _PREFIX.size + 8 * told[1]
    flags = (told[0] & _READS) | _FURTHER | _BESIDE
    return bytes((flags,)) + told[1:size] + _packed(section, content)


def sections_beside(body: bytes) -> Iterator[tuple[int, bytes] | Reject] | None:
    """The sections of such a body; None for any other."""
    if len(body) < _PREFIX.size or not body[0] & _BESIDE:
        return None
    return _sections(body, _PREFIX.size + 8 * body[1])


def _told(message: Message, codec: Codec, peer_schema: int | None) -> Iterator[tuple[int, bytes]]:
    """The sections that may be in any datagram of a message."""
    for update in message.updates:
        assert not isinstance(
            update, ObservedFragment
        )  # An entity is sent whole; the codec cuts it up.
        yield from codec.encode(update, peer_schema)
    for measure in message.measures:
        yield MEASURE, encode_measure(measure)


def _spoken(message: Message) -> bytes:
    """The sections that only the first datagram of a message has."""
    asks = [(ASK, encode_ask(one)) for one in (message.asks or ())[:ASKS_MAX]]
    permits = [(PERMIT, encode_permit(one)) for one in (message.permits or ())[:ASKS_MAX]]
    rooms = [(ROOM_ASK, encode_room_ask(one)) for one in (message.room_asks or ())[:ASKS_MAX]]
    return b"".join(_packed(*one) for one in (*asks, *permits, *rooms))


def _packed(section: int, content: bytes) -> bytes:
    return _SECTION.pack(section, len(content)) + content


def _prefix(message: Message, flags: int) -> bytes:
    desired, observed = message.desired, message.observed
    return _PREFIX.pack(
        flags | (_PROBE if message.probe else 0) | (_READS if message.reads else 0),
        len(message.words),
        message.incarnation,
        message.term,
        message.schema,
        desired.epoch,
        desired.version,
        desired.digest,
        observed.epoch,
        observed.version,
        observed.digest,
    ) + _WORDS[len(message.words)].pack(*message.words)


def _sections(body: bytes, start: int) -> Iterator[tuple[int, bytes] | Reject]:
    """The type and content of each section; ends with a `Reject` where one does not fit."""
    while start < len(body):
        begin = start + _SECTION.size
        if begin > len(body):
            yield Reject(FrameFault.SECTION)
            return
        section, length = _SECTION.unpack_from(body, start)
        start = begin + length
        if start > len(body):
            yield Reject(FrameFault.SECTION)
            return
        yield section, body[begin:start]
