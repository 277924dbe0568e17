r"""TFTP packets as bytes and as values: RFC 1350, 2347 to 2349 and 7440, reading only.

>>> parse(b"\0\1undionly.kpxe\0octet\0blksize\0001468\0")
Read(name='undionly.kpxe', options={'blksize': '1468'})
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

BLOCK_BYTES: Final = 512
BLOCK_BYTES_MAX: Final = 65_464
WINDOW_MAX: Final = 64
PACKET_BYTES_MAX: Final = 2_048
NOT_FOUND: Final = 1
ACCESS_DENIED: Final = 2
ILLEGAL: Final = 4
_TEXTS_MAX: Final = 32

_READ, _WRITE, _DATA, _ACK, _ERROR, _OPTIONS = range(1, 7)
_NUMBERED: Final = struct.Struct("!HH")


@dataclass(frozen=True, slots=True)
class Read:
    """A client asks for a file; names of options are in small letters."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TftpWrite:
    """A client would send a file."""


@dataclass(frozen=True, slots=True)
class Ack:
    """All blocks up to this one have come; 0 is what was said of options."""

    block: int


@dataclass(frozen=True, slots=True)
class Error:
    """The other side gives up."""

    code: int
    text: str


@dataclass(frozen=True, slots=True)
class Terms:
    """The transfer of a file; `told` are the options that the client must be sent."""

    block_bytes: int
    window: int
    told: Mapping[str, str]


Packet = Read | TftpWrite | Ack | Error


def parse(data: bytes) -> Packet | None:
    """What a client's packet says; None where it says nothing."""
    if not 4 <= len(data) <= PACKET_BYTES_MAX:
        return None
    operation, number = _NUMBERED.unpack_from(data)
    match operation:
        case 1:
            return _parse_read(data[2:])
        case 2:
            return TftpWrite()
        case 4:
            return Ack(number)
        case 5:
            return Error(number, data[4:].partition(b"\0")[0].decode("ascii", "replace"))
        case _:
            return None


def negotiate(options: Mapping[str, str], size_bytes: int) -> Terms:
    """What is granted of what a client asks for; what is not understood is left out.

    >>> negotiate({"blksize": "9000", "tsize": "0", "windowsize": "4", "multicast": ""}, 70)
    Terms(block_bytes=1468, window=4, told={'blksize': '1468', 'tsize': '70', 'windowsize': '4'})
    """
    block, window = BLOCK_BYTES, 1
    told: dict[str, str] = {}
    if (asked := _number(options, "blksize", 8, BLOCK_BYTES_MAX)) is not None:
        # No fragments: firmware often cannot put them together.
        block = min(asked, 1_468)
        told["blksize"] = str(block)
    if "tsize" in options:
        told["tsize"] = str(size_bytes)
    if (asked := _number(options, "windowsize", 1, 65_535)) is not None:
        window = min(asked, WINDOW_MAX)
        told["windowsize"] = str(window)
    return Terms(block, window, told)


def data_packet(block: int, content: bytes) -> bytes:
    return _NUMBERED.pack(_DATA, block & 0xFFFF) + content


def options_packet(told: Mapping[str, str]) -> bytes:
    texts = [text for pair in told.items() for text in pair]
    return struct.pack("!H", _OPTIONS) + b"".join(text.encode("ascii") + b"\0" for text in texts)


def error_packet(error: Error) -> bytes:
    return _NUMBERED.pack(_ERROR, error.code) + error.text.encode("ascii", "replace") + b"\0"


def _parse_read(data: bytes) -> Read | None:
    texts = data.split(b"\0")
    if texts.pop() or not 2 <= len(texts) <= _TEXTS_MAX or len(texts) % 2:
        return None
    try:
        name, mode, *rest = (text.decode("ascii") for text in texts)
    except UnicodeDecodeError:
        return None
    if mode.lower() != "octet":
        return None
    names = [text.lower() for text in rest[::2]]
    return Read(name, dict(zip(names, rest[1::2], strict=True)))


def _number(options: Mapping[str, str], name: str, least: int, most: int) -> int | None:
    text = options.get(name, "")
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        return None
    return int(text) if least <= int(text) <= most else None
