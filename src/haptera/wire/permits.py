"""What neighbours ask of each other before one disturbs anything, and say to it, one a section."""

from typing import Final

import msgspec

from haptera.model.entity import EntityId, is_name
from haptera.model.messages import Ask, Permit, RoomAsk
from haptera.model.walltime import AgeMs
from haptera.wire.frame import FrameFault, Reject

ASK: Final = 3
PERMIT: Final = 4
ROOM_ASK: Final = 6
# Of each kind, so that all of a node's are in the first datagram of a message.
ASKS_MAX: Final = 2
ID_BYTES_MAX: Final = 48
STEP_BYTES_MAX: Final = 130
TEXT_BYTES_MAX: Final = 160


class _Ask(msgspec.Struct, frozen=True, gc=False, array_like=True):
    id: str
    step: str
    late_ms: AgeMs


class _Permit(msgspec.Struct, frozen=True, gc=False, array_like=True):
    id: str
    granted: bool
    text: str


class _RoomAsk(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Its node is the one that says so."""

    id: str
    kind: str
    name: str
    late_ms: AgeMs
    begun: bool
    harmless: bool = False


_ENCODER: Final = msgspec.msgpack.Encoder()
_ASK: Final = msgspec.msgpack.Decoder(_Ask)
_ROOM_ASK: Final = msgspec.msgpack.Decoder(_RoomAsk)
_PERMIT: Final = msgspec.msgpack.Decoder(_Permit)


def encode_ask(ask: Ask) -> bytes:
    assert len(ask.id.encode()) <= ID_BYTES_MAX
    return _ENCODER.encode(_Ask(ask.id, _cut(ask.step, STEP_BYTES_MAX), ask.late_ms))


def encode_room_ask(ask: RoomAsk) -> bytes:
    assert len(ask.id.encode()) <= ID_BYTES_MAX
    of = ask.entity
    said = _RoomAsk(ask.id, of.kind, of.name, ask.late_ms, ask.begun, ask.harmless)
    return _ENCODER.encode(said)


def encode_permit(permit: Permit) -> bytes:
    """A text that is too long is cut, an id as it came."""
    text = _cut(permit.text, TEXT_BYTES_MAX)
    return _ENCODER.encode(_Permit(permit.id, permit.granted, text))


def decode_spoken(
    section: int, content: bytes, peer: str
) -> Ask | Permit | RoomAsk | Reject | None:
    """An ask or a permit of this neighbour; None for a section of another type."""
    try:
        if section == ASK:
            ask = _ASK.decode(content)
            return Ask(_id(ask.id), ask.step, ask.late_ms)
        if section == PERMIT:
            permit = _PERMIT.decode(content)
            return Permit(_id(permit.id), permit.granted, permit.text)
        if section == ROOM_ASK:
            room = _ROOM_ASK.decode(content)
            entity = EntityId(_name(room.kind), _name(room.name), peer)
            return RoomAsk(_id(room.id), entity, room.late_ms, room.begun, room.harmless)
    except (ValueError, RecursionError):
        return Reject(FrameFault.SECTION)
    return None


def _id(text: str) -> str:
    """An id that can be said back.

    Raises:
        ValueError: it is longer than any.
    """
    if len(text.encode(errors="replace")) > ID_BYTES_MAX:
        raise ValueError("an id that is too long")
    return text


def _name(text: str) -> str:
    """A name that an entity can have.

    Raises:
        ValueError: none can.
    """
    if not is_name(text):
        raise ValueError("no name")
    return text


def _cut(text: str, bytes_max: int) -> str:
    return text.encode(errors="replace")[:bytes_max].decode(errors="ignore")
