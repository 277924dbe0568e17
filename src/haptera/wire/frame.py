"""How each datagram begins: 24 clear but authenticated bytes, and why one may be refused."""

from enum import IntEnum, StrEnum
from struct import Struct
from typing import Final

import msgspec

WIRE_VERSION: Final = 1
# Keys change by the boot-id: another epoch is for what boot-ids cannot tell apart.
KEY_EPOCH: Final = 1
DATAGRAM_BYTES_MAX: Final = 1200
HEADER_BYTES: Final = 24
ECHO_BYTES: Final = 16
TAG_BYTES: Final = 16
SEALED_BYTES_MIN: Final = HEADER_BYTES + ECHO_BYTES + TAG_BYTES
BODY_BYTES_MAX: Final = DATAGRAM_BYTES_MAX - SEALED_BYTES_MIN
# Of a body: the fixed part with all the words there can be, and the header of each section.
PREFIX_WORDS_MAX: Final = 4
PREFIX_BYTES_MAX: Final = 74 + PREFIX_WORDS_MAX * 8
SECTION_HEADER_BYTES: Final = 3
CONTENT_BYTES_MAX: Final = BODY_BYTES_MAX - PREFIX_BYTES_MAX - SECTION_HEADER_BYTES

# Version, type, suite, key epoch, receiver index, sender boot-id, sequence.
_HEADER: Final = Struct(">BBBBIQQ")
_INDEX: Final = Struct(">I")
INDEX_OFFSET: Final = 4


class DatagramType(IntEnum):
    """A hello has a body; a `hi` is empty and says only what its echo says."""

    HELLO = 1
    HI = 2


class Suite(IntEnum):
    """How datagrams are sealed: chosen at enrolment, one for each session."""

    CHACHA20_POLY1305 = 1
    AES_256_GCM = 2


class FrameFault(StrEnum):
    """Why bytes from outside were refused; each is a counter."""

    LENGTH = "length"  # shorter or longer than any of ours
    VERSION = "version"  # of another wire version
    TYPE = "type"  # of no type that we know
    SUITE = "suite"  # sealed by another suite than the session's
    EPOCH = "epoch"  # sealed in another key epoch than the session's
    INDEX = "index"  # for no session that we have
    SEEN = "seen"  # accepted before, or too old to tell
    RETIRED = "retired"  # from a process whose successor was taken up
    BUDGET = "budget"  # from a new boot-id, and too many of these in this second
    FORGED = "forged"  # not sealed with the session's key, or altered
    ECHO = "echo"  # authentic, but perhaps recorded long ago
    PREFIX = "prefix"  # a hello's fixed part that is none
    SECTION = "section"  # a section that ends beyond the body, or does not hold what it should
    FRAME = "frame"  # a frame that is too long, or no map with text keys


class Reject(msgspec.Struct, frozen=True, gc=False):
    """Bytes that changed nothing, and why."""

    reason: FrameFault


class Header(msgspec.Struct, frozen=True, gc=False):
    """What the clear part says: for whom, from which process, the how-manieth."""

    type: DatagramType
    suite: Suite
    receiver: int
    boot: int
    sequence: int
    epoch: int = KEY_EPOCH


_TYPES: Final = {one.value: one for one in DatagramType}
_SUITES: Final = {one.value: one for one in Suite}


def pack_header(header: Header) -> bytes:
    """The 24 bytes of a header.

    >>> pack_header(Header(DatagramType.HELLO, Suite.AES_256_GCM, 7, 8, 9)).hex(" ", 8)
    '0101020100000007 0000000000000008 0000000000000009'
    """
    return _HEADER.pack(
        WIRE_VERSION,
        header.type,
        header.suite,
        header.epoch,
        header.receiver,
        header.boot,
        header.sequence,
    )


def parse_header(datagram: bytes) -> Header | Reject:
    """Read how a datagram begins; says nothing yet of whether it is authentic."""
    if not SEALED_BYTES_MIN <= len(datagram) <= DATAGRAM_BYTES_MAX:
        return Reject(FrameFault.LENGTH)
    version, type_, suite, epoch, receiver, boot, sequence = _HEADER.unpack_from(datagram)
    if version != WIRE_VERSION:
        return Reject(FrameFault.VERSION)
    known_type = _TYPES.get(type_)
    if known_type is None:
        return Reject(FrameFault.TYPE)
    known_suite = _SUITES.get(suite)
    if known_suite is None:
        return Reject(FrameFault.SUITE)
    return Header(known_type, known_suite, receiver, boot, sequence, epoch)


def receiver_of(datagram: bytes) -> int | Reject:
    """The receiver index alone, to find the session that can open the datagram."""
    if len(datagram) < HEADER_BYTES:
        return Reject(FrameFault.LENGTH)
    index: int = _INDEX.unpack_from(datagram, INDEX_OFFSET)[0]
    return index
