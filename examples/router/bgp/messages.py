"""Messages of BGP-4 with 4-octet AS numbers: octets in, values out, and back.

    parse(encode(Keepalive())) == Keepalive()

The parser is total: any octets are a message or a `MalformedError`.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, assert_never

from bgp.attributes import (
    MALFORMED_LIST,
    MANDATORY,
    MISSING_WELL_KNOWN,
    UPDATE_ERROR,
    Attributes,
    MalformedError,
    parse_attributes,
)

MARKER: Final = b"\xff" * 16
HEADER_BYTES: Final = 19
MESSAGE_BYTES_MAX: Final = 4_096
VERSION: Final = 4
HOLD_S_MIN: Final = 3
# What stands in an OPEN for an AS number of more than two octets (RFC 6793).
AS_TRANS: Final = 23_456
_AS_SHORT_MAX: Final = 0xFFFF
_PREFIX_BITS_MAX: Final = 32
IPV4_UNICAST: Final = struct.pack("!HBB", 1, 0, 1)
# Capabilities (RFC 5492).
MULTIPROTOCOL: Final = 1
ROUTE_REFRESH: Final = 2
GRACEFUL_RESTART: Final = 64
LONG_AS_NUMBERS: Final = 65
_CAPABILITIES: Final = 2
_OPEN_HEAD: Final = struct.Struct("!BHH4sB")

# Errors (RFC 4271, 6).
HEADER_ERROR: Final = 1
NOT_SYNCHRONIZED: Final = 1
BAD_LENGTH: Final = 2
BAD_TYPE: Final = 3
OPEN_ERROR: Final = 2
BAD_VERSION: Final = 1
BAD_PEER_AS: Final = 2
BAD_IDENTIFIER: Final = 3
BAD_PARAMETER: Final = 4
BAD_HOLD_TIME: Final = 6
BAD_CAPABILITY: Final = 7
BAD_NETWORK: Final = 10
HOLD_TIMER_EXPIRED: Final = 4
CEASE: Final = 6


class Prefix(NamedTuple):
    """An IPv4 network: its address, with zeros behind the prefix, and how many bits count."""

    network: bytes
    bits: int

    @classmethod
    def of(cls, text: str) -> "Prefix":
        """The prefix that is written as `10.1.2.0/24`."""
        address, _, bits = text.partition("/")
        return cls(bytes(map(int, address.split("."))), int(bits))

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.network))}/{self.bits}"

    def encode(self) -> bytes:
        """The prefix as it is sent: only the octets that count."""
        return bytes((self.bits,)) + self.network[: (self.bits + 7) // 8]


class Capability(NamedTuple):
    """The capabilities of a speaker."""

    code: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Open:
    """The first message of each side: who it is, and what it can do."""

    as_number: int
    hold_s: int
    router_id: bytes
    capabilities: tuple[Capability, ...]

    def can(self, capability: Capability) -> bool:
        """True where the speaker has this capability."""
        return capability in self.capabilities


@dataclass(frozen=True, slots=True)
class Update:
    """Routes that end, and routes that begin or change, all of these with the same attributes."""

    withdrawn: tuple[Prefix, ...] = ()
    attributes: Attributes = ()
    announced: tuple[Prefix, ...] = ()


# RFC 4724: what a speaker sends once its peer has the whole table.
END_OF_TABLE: Final = Update()


@dataclass(frozen=True, slots=True)
class Notification:
    """The last message of a session: why it ends."""

    code: int
    subcode: int
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Keepalive:
    """Says only that its sender is there."""


@dataclass(frozen=True, slots=True)
class RouteRefresh:
    """Asks for the whole table once more (RFC 2918); the family is not looked at."""

    family: bytes = IPV4_UNICAST


Message = Open | Update | Notification | Keepalive | RouteRefresh
_OPEN, _UPDATE, _NOTIFICATION, _KEEPALIVE, _ROUTE_REFRESH = range(1, 6)


def encode(message: Message) -> bytes:
    """The message as it is sent; ValueError where it is larger than a message may be."""
    match message:
        case Open():
            kind, body = _OPEN, _open_body(message)
        case Update():
            kind, body = _UPDATE, _update_body(message)
        case Notification(code, subcode, data):
            kind, body = _NOTIFICATION, bytes((code, subcode)) + data
        case Keepalive():
            kind, body = _KEEPALIVE, b""
        case RouteRefresh(family):
            kind, body = _ROUTE_REFRESH, family
        case _:
            assert_never(message)
    size = HEADER_BYTES + len(body)
    if size > MESSAGE_BYTES_MAX:
        raise ValueError(f"a message of {size} octets; {MESSAGE_BYTES_MAX} at most")
    return MARKER + struct.pack("!HB", size, kind) + body


def size_of(header: bytes) -> int:
    """The length in octets of the message that begins with this header.

    Raises:
        MalformedError: no message begins so.
    """
    if header[:16] != MARKER:
        raise MalformedError("the marker is missing", HEADER_ERROR, NOT_SYNCHRONIZED)
    size = int.from_bytes(header[16:18], "big")
    if not HEADER_BYTES <= size <= MESSAGE_BYTES_MAX:
        raise MalformedError(f"a message of {size} octets", HEADER_ERROR, BAD_LENGTH, header[16:18])
    return size


def parse(octets: bytes) -> Message:
    """The message that these octets are, header included.

    Raises:
        MalformedError: they are none; it says what a NOTIFICATION has to say.
    """
    if len(octets) < HEADER_BYTES or size_of(octets) != len(octets):
        raise MalformedError("not of the length it says", HEADER_ERROR, BAD_LENGTH, octets[16:18])
    kind, body = octets[18], octets[HEADER_BYTES:]
    if kind not in _BODY_BYTES:
        raise MalformedError(f"a message of type {kind}", HEADER_ERROR, BAD_TYPE, octets[18:19])
    low, high = _BODY_BYTES[kind]
    if not low <= len(body) <= high:
        why = f"{len(body)} octets are no message of type {kind}"
        raise MalformedError(why, HEADER_ERROR, BAD_LENGTH, octets[16:18])
    match kind:
        case 1:
            return _parse_open(body)
        case 2:
            return _parse_update(body)
        case 3:
            return Notification(body[0], body[1], body[2:])
        case 4:
            return Keepalive()
        case _:
            return RouteRefresh(body)


_BODY_MAX: Final = MESSAGE_BYTES_MAX - HEADER_BYTES
_BODY_BYTES: Final = {
    _OPEN: (10, _BODY_MAX),
    _UPDATE: (4, _BODY_MAX),
    _NOTIFICATION: (2, _BODY_MAX),
    _KEEPALIVE: (0, 0),
    _ROUTE_REFRESH: (4, 4),
}


def packed(changes: Iterable[tuple[Prefix, Attributes | None]]) -> Iterator[Update]:
    """As few messages as say all changes, none too large; None: the route ends.

    Each prefix is there once at most: between messages there is no order to rely on.
    """
    routes: dict[Attributes | None, list[Prefix]] = {}
    for prefix, attributes in changes:
        routes.setdefault(attributes, []).append(prefix)
    for attributes, prefixes in routes.items():
        octets = b"".join(one.encode() for one in attributes or ())
        room = _BODY_MAX - 4 - len(octets)
        for some in _portions(prefixes, room):
            yield Update(some) if attributes is None else Update((), attributes, some)


def _portions(prefixes: list[Prefix], room: int) -> Iterator[tuple[Prefix, ...]]:
    """The prefixes in order, so many together as have room."""
    count_max = room // 5  # of the longest
    for at in range(0, len(prefixes), count_max):
        yield tuple(prefixes[at : at + count_max])


def _open_body(message: Open) -> bytes:
    short = message.as_number if message.as_number <= _AS_SHORT_MAX else AS_TRANS
    said = b"".join(bytes((code, len(value))) + value for code, value in message.capabilities)
    if said:
        said = bytes((_CAPABILITIES, len(said))) + said
    return _OPEN_HEAD.pack(VERSION, short, message.hold_s, message.router_id, len(said)) + said


def _parse_open(body: bytes) -> Open:
    version, as_number, hold_s, router_id, size = _OPEN_HEAD.unpack_from(body)
    if version != VERSION:
        raise MalformedError(f"BGP-{version}", OPEN_ERROR, BAD_VERSION, b"\x00\x04")
    if size != len(body) - 10:
        raise _bad_parameter()
    if 0 < hold_s < HOLD_S_MIN:
        raise MalformedError(f"a hold time of {hold_s} s", OPEN_ERROR, BAD_HOLD_TIME)
    if router_id == b"\x00" * 4:
        raise MalformedError("no router identifier", OPEN_ERROR, BAD_IDENTIFIER)
    capabilities = tuple(_parse_capabilities(body[10:]))
    # RFC 6793: who has it says its number there, whatever stands above.
    for capability in capabilities:
        if capability.code == LONG_AS_NUMBERS:
            if len(capability.value) != 4:
                raise _bad_parameter()
            as_number = int.from_bytes(capability.value, "big")
    if as_number == 0:
        raise MalformedError("AS 0", OPEN_ERROR, BAD_PEER_AS)
    return Open(as_number, hold_s, router_id, capabilities)


def _parse_capabilities(octets: bytes) -> Iterator[Capability]:
    for kind, parameter in _pairs(octets):
        if kind != _CAPABILITIES:
            raise _bad_parameter()
        yield from (Capability(code, value) for code, value in _pairs(parameter))


def _pairs(octets: bytes) -> Iterator[tuple[int, bytes]]:
    """The encoding as type, length, value."""
    at = 0
    while at < len(octets):
        end = at + 2 + (octets[at + 1] if at + 1 < len(octets) else 0)
        if at + 2 > len(octets) or end > len(octets):
            raise _bad_parameter()
        yield octets[at], octets[at + 2 : end]
        at = end


def _update_body(message: Update) -> bytes:
    withdrawn = b"".join(one.encode() for one in message.withdrawn)
    attributes = b"".join(one.encode() for one in message.attributes)
    announced = b"".join(one.encode() for one in message.announced)
    sizes = (len(withdrawn).to_bytes(2, "big"), len(attributes).to_bytes(2, "big"))
    return sizes[0] + withdrawn + sizes[1] + attributes + announced


def _parse_update(body: bytes) -> Update:
    at = 2 + int.from_bytes(body[:2], "big")
    end = at + 2 + int.from_bytes(body[at : at + 2], "big")
    if at + 2 > len(body) or end > len(body):
        raise MalformedError("an UPDATE is cut short", UPDATE_ERROR, MALFORMED_LIST)
    withdrawn = tuple(_parse_prefixes(body[2:at]))
    attributes = parse_attributes(body[at + 2 : end])
    announced = tuple(_parse_prefixes(body[end:]))
    if announced:
        _check_mandatory(attributes)
    return Update(withdrawn, attributes, announced)


def _check_mandatory(attributes: Attributes) -> None:
    codes = {one.code for one in attributes}
    for code in MANDATORY:
        if code not in codes:
            why = f"routes without attribute {code}"
            raise MalformedError(why, UPDATE_ERROR, MISSING_WELL_KNOWN, bytes((code,)))


def _parse_prefixes(octets: bytes) -> Iterator[Prefix]:
    at = 0
    while at < len(octets):
        bits = octets[at]
        end = at + 1 + (bits + 7) // 8
        if bits > _PREFIX_BITS_MAX or end > len(octets):
            raise MalformedError("a network is cut short", UPDATE_ERROR, BAD_NETWORK)
        # What stands behind the prefix means nothing, and two ways to say one are one.
        number = int.from_bytes(octets[at + 1 : end].ljust(4, b"\x00"), "big")
        number &= 0xFFFFFFFF << (32 - bits) & 0xFFFFFFFF
        yield Prefix(number.to_bytes(4, "big"), bits)
        at = end


def _bad_parameter() -> MalformedError:
    return MalformedError("a parameter of an OPEN", OPEN_ERROR, BAD_PARAMETER)
