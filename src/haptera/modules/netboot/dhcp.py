r"""DHCPv4 messages as bytes and as values: RFC 2131, 2132, 3046, 3396, 4578 and 6842.

>>> request = DhcpMessage(1, 7, mac=bytes.fromhex("525400000001"), options={MESSAGE_TYPE: b"\x01"})
>>> parse(encode(request)) == request
True
"""

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Final

REQUEST: Final = 1
REPLY: Final = 2

DISCOVER, OFFER, ASK, DECLINE, ACK, NAK, RELEASE, INFORM = range(1, 9)

SUBNET_MASK: Final = 1
ROUTER: Final = 3
HOST_NAME: Final = 12
VENDOR_OPTIONS: Final = 43
REQUESTED_ADDRESS: Final = 50
LEASE_TIME: Final = 51
OVERLOAD: Final = 52
MESSAGE_TYPE: Final = 53
SERVER: Final = 54
PARAMETERS: Final = 55
MESSAGE: Final = 56
SIZE_MAX: Final = 57
VENDOR_CLASS: Final = 60
CLIENT_ID: Final = 61
TFTP_SERVER: Final = 66
BOOT_FILE: Final = 67
USER_CLASS: Final = 77
RELAY_AGENT: Final = 82
ARCHITECTURE: Final = 93
CARD: Final = 94
MACHINE_ID: Final = 97
IPXE: Final = 175

# Old relays and firmware drop what is shorter.
BYTES_MIN: Final = 300
BYTES_MAX: Final = 1_500
NOWHERE: Final = IPv4Address(0)

_COOKIE: Final = b"\x63\x82\x53\x63"
_ETHERNET: Final = (1, 6)
_HEAD: Final = struct.Struct("!BBBBIHH4s4s4s4s16s64s128s4s")
_NUMBER: Final = struct.Struct("!H")
_NAMED_ARCHITECTURE: Final = re.compile(rb"(?:PXE|HTTP)Client:Arch:([0-9]{5})")
_BROADCAST: Final = 0x8000
_PAD: Final = 0
_END: Final = 255
_OPTION_BYTES_MAX: Final = 255
_FILE_OVERLOADED: Final = 1
_NAME_OVERLOADED: Final = 2


@dataclass(frozen=True, slots=True)
class DhcpMessage:
    """One message; addresses are those of the client, of what it gets, and of who serves it."""

    op: int
    transaction: int
    mac: bytes = bytes(6)
    options: Mapping[int, bytes] = field(default_factory=dict)
    client: IPv4Address = NOWHERE
    yours: IPv4Address = NOWHERE
    server: IPv4Address = NOWHERE
    relay: IPv4Address = NOWHERE
    file: bytes = b""
    seconds: int = 0
    hops: int = 0
    broadcast: bool = False

    @property
    def type(self) -> int | None:
        """DISCOVER, OFFER, …; None in plain BOOTP."""
        value = self.options.get(MESSAGE_TYPE, b"")
        return value[0] if len(value) == 1 else None

    def address(self, option: int) -> IPv4Address | None:
        value = self.options.get(option, b"")
        return IPv4Address(value) if len(value) == 4 else None

    @property
    def architectures(self) -> tuple[int, ...]:
        """What the firmware runs on, the best first (RFC 4578); a plain PC where it does not say.

        Firmware without the option has the number in its vendor class (Intel's PXE 2.1, 2.2.2).
        """
        value = self.options.get(ARCHITECTURE, b"")
        listed = tuple(number for (number,) in _NUMBER.iter_unpack(value[: len(value) & ~1]))
        named = _NAMED_ARCHITECTURE.match(self.options.get(VENDOR_CLASS, b""))
        return listed or ((int(named[1]),) if named else (0,))


def parse(data: bytes) -> DhcpMessage | None:
    """The message in a datagram; None where it is none, of Ethernet."""
    if len(data) < _HEAD.size or len(data) > BYTES_MAX:
        return None
    (op, kind, length, hops, transaction, seconds, flags, client, yours, server, relay, mac,
     name, file, cookie) = _HEAD.unpack_from(data)  # fmt: skip
    if op not in (REQUEST, REPLY) or (kind, length) != _ETHERNET or cookie != _COOKIE:
        return None
    options = _options(data[_HEAD.size :], file, name)
    if options is None:
        return None
    overloaded = options.get(OVERLOAD, b"\0")[0] & _FILE_OVERLOADED
    return DhcpMessage(
        op,
        transaction,
        mac[:6],
        options,
        IPv4Address(client),
        IPv4Address(yours),
        IPv4Address(server),
        IPv4Address(relay),
        file=b"" if overloaded else file.partition(b"\0")[0],
        seconds=seconds,
        hops=hops,
        broadcast=bool(flags & _BROADCAST),
    )


def encode(message: DhcpMessage) -> bytes:
    head = _HEAD.pack(
        message.op,
        *_ETHERNET,
        message.hops,
        message.transaction,
        message.seconds,
        _BROADCAST if message.broadcast else 0,
        message.client.packed,
        message.yours.packed,
        message.server.packed,
        message.relay.packed,
        message.mac,
        b"",
        message.file,
        _COOKIE,
    )
    # In the order of the options, but what the relay added goes last (RFC 3046, 2.2).
    order = sorted(message.options, key=lambda code: code == RELAY_AGENT)
    body = b"".join(_encoded(code, message.options[code]) for code in order)
    return (head + body + bytes([_END])).ljust(BYTES_MIN, b"\0")


def _encoded(code: int, value: bytes) -> bytes:
    """An option, in pieces where it is long (RFC 3396)."""
    starts = range(0, max(len(value), 1), _OPTION_BYTES_MAX)
    pieces = [value[at : at + _OPTION_BYTES_MAX] for at in starts]
    return b"".join(bytes([code, len(piece)]) + piece for piece in pieces)


def _options(area: bytes, file: bytes, name: bytes) -> dict[int, bytes] | None:
    """All options, those in overloaded fields too; None where one is cut off."""
    options: dict[int, bytes] = {}
    if not _collect(area, options):
        return None
    overload = options.get(OVERLOAD, b"\0")
    if len(overload) != 1:
        return None
    fields = ((_FILE_OVERLOADED, file), (_NAME_OVERLOADED, name))
    if all(_collect(held, options) for bit, held in fields if overload[0] & bit):
        return options
    return None


def _collect(area: bytes, options: dict[int, bytes]) -> bool:
    for option in _pieces(area):
        if option is None:
            return False
        code, piece = option
        options[code] = options.get(code, b"") + piece
    return len(options.get(OVERLOAD, b"\0")) == 1


def _pieces(area: bytes) -> Iterator[tuple[int, bytes] | None]:
    at = 0
    while at < len(area) and area[at] != _END:
        if area[at] == _PAD:
            at += 1
            continue
        end = at + 2 + area[at + 1] if at + 1 < len(area) else len(area) + 1
        if end > len(area):
            yield None
            return
        yield area[at], area[at + 2 : end]
        at = end
