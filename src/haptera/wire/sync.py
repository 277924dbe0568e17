"""A message as the bodies of datagrams: a part that is read without decoding, then sections."""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from haptera.model.messages import Mark, Message, Update
from haptera.model.schema import WORDS_MAX
from haptera.wire.frame import (
    BODY_BYTES_MAX,
    CONTENT_BYTES_MAX,
    PREFIX_BYTES_MAX,
    SECTION_HEADER_BYTES,
    Reason,
    Reject,
)
from haptera.wire.updates import Codec

# Flags, how many words; incarnation, term, schema; epoch, version and digest of both layers.
_PREFIX: Final = Struct(">BB9Q")
_WORDS: Final = tuple(Struct(f">{count}Q") for count in range(WORDS_MAX + 1))
_SECTION: Final = Struct(">BH")
_PROBE: Final = 1

assert _PREFIX.size + _WORDS[-1].size == PREFIX_BYTES_MAX
assert _SECTION.size == SECTION_HEADER_BYTES


def encode(message: Message, codec: Codec, peer_schema: int | None) -> list[bytes]:
    """The bodies that carry a message: as many as its updates need, each with the fixed part.

    `peer_schema` is the schema digest that the peer last told, None where it has told none.
    """
    prefix = _prefix(message)
    bodies = [prefix]
    for update in message.updates:
        section, content = codec.encode(update, peer_schema)
        if len(content) > CONTENT_BYTES_MAX:
            # The codec refuses kinds that need more when packed. To a peer of another schema,
            # which plans nothing until it has ours, the largest named ones are not worth more.
            assert peer_schema != codec.schema
            continue
        packed = _SECTION.pack(section, len(content)) + content
        if len(bodies[-1]) + len(packed) > BODY_BYTES_MAX:
            bodies.append(prefix)
        bodies[-1] += packed
    return bodies


def decode(body: bytes, codec: Codec) -> Message | Reject:
    """Read an authentic body; sections of types that we do not know are skipped."""
    if len(body) < _PREFIX.size:
        return Reject(Reason.PREFIX)
    flags, words, incarnation, term, schema, *marks = _PREFIX.unpack_from(body)
    if words > WORDS_MAX or len(body) < _PREFIX.size + 8 * words:
        return Reject(Reason.PREFIX)
    updates: list[Update] = []
    for section in _sections(body, _PREFIX.size + 8 * words):
        if isinstance(section, Reject):
            return section
        update = codec.decode(*section, schema)
        if isinstance(update, Reject):
            return update
        if update is not None:
            updates.append(update)
    return Message(
        incarnation,
        term,
        schema,
        Mark(*marks[:3]),
        Mark(*marks[3:]),
        _WORDS[words].unpack_from(body, _PREFIX.size),
        tuple(updates),
        bool(flags & _PROBE),
    )


def _prefix(message: Message) -> bytes:
    desired, observed = message.desired, message.observed
    return _PREFIX.pack(
        _PROBE if message.probe else 0,
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
            yield Reject(Reason.SECTION)
            return
        section, length = _SECTION.unpack_from(body, start)
        start = begin + length
        if start > len(body):
            yield Reject(Reason.SECTION)
            return
        yield section, body[begin:start]
