"""Path attributes of BGP: octets in, checked values out; who reads one knows its form."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

OPTIONAL: Final = 0x80
TRANSITIVE: Final = 0x40
PARTIAL: Final = 0x20
_EXTENDED: Final = 0x10
_FLAGS: Final = OPTIONAL | TRANSITIVE | PARTIAL
_SHORT_MAX: Final = 0xFF

ORIGIN: Final = 1
AS_PATH: Final = 2
NEXT_HOP: Final = 3
MED: Final = 4
LOCAL_PREF: Final = 5
ATOMIC_AGGREGATE: Final = 6
AGGREGATOR: Final = 7
COMMUNITIES: Final = 8
ORIGINATOR_ID: Final = 9
CLUSTER_LIST: Final = 10
LARGE_COMMUNITIES: Final = 32
# With at least one route announced, none of these may be missing.
MANDATORY: Final = (ORIGIN, AS_PATH, NEXT_HOP)

AS_SET: Final = 1
AS_SEQUENCE: Final = 2
_ORIGINS: Final = 3
# Of UPDATE Message Error (RFC 4271, 6.3).
UPDATE_ERROR: Final = 3
MALFORMED_LIST: Final = 1
UNKNOWN_WELL_KNOWN: Final = 2
MISSING_WELL_KNOWN: Final = 3
WRONG_FLAGS: Final = 4
WRONG_LENGTH: Final = 5
WRONG_ORIGIN: Final = 6
WRONG_NEXT_HOP: Final = 8
MALFORMED_AS_PATH: Final = 11


class MalformedError(Exception):
    """Octets that are no message of BGP, with what a NOTIFICATION says of them."""

    def __init__(self, why: str, code: int, subcode: int, data: bytes = b"") -> None:
        super().__init__(why)
        self.code, self.subcode, self.data = code, subcode, data


@dataclass(frozen=True, slots=True, order=True)
class Attribute:
    """One path attribute: its code, the three flags that mean something, and its value."""

    code: int
    flags: int
    value: bytes

    def encode(self) -> bytes:
        """The attribute as it is sent."""
        size = len(self.value)
        if size > _SHORT_MAX:
            head = bytes((self.flags | _EXTENDED, self.code)) + size.to_bytes(2, "big")
        else:
            head = bytes((self.flags, self.code, size))
        return head + self.value


# Sorted by code, each code once.
Attributes = tuple[Attribute, ...]


def parse_attributes(octets: bytes) -> Attributes:
    """All attributes of an UPDATE, checked.

    Raises:
        MalformedError: they are not as RFC 4271 has them.
    """
    found: dict[int, Attribute] = {}
    for one in _split(octets):
        if one.code in found:
            raise _wrong(f"attribute {one.code} is there twice", MALFORMED_LIST)
        found[one.code] = one
        _check(one)
    return tuple(found[code] for code in sorted(found))


def value_of(attributes: Attributes, code: int) -> bytes | None:
    """The value of one attribute; None: it is not there."""
    return next((one.value for one in attributes if one.code == code), None)


def number_of(attributes: Attributes, code: int, default: int) -> int:
    """The value of an attribute that is a number."""
    value = value_of(attributes, code)
    return default if value is None else int.from_bytes(value, "big")


def with_attribute(attributes: Attributes, attribute: Attribute) -> Attributes:
    """The same attributes, with this one in place of any of its code."""
    others = (one for one in attributes if one.code != attribute.code)
    return tuple(sorted((*others, attribute)))


def as_path_length(value: bytes) -> int:
    """The length of a path for comparison: a set counts as one."""
    return sum(1 if kind == AS_SET else len(members) for kind, members in segments(value))


def as_path(members: Iterable[int]) -> Attribute:
    """A path that is one sequence, or empty."""
    octets = b"".join(one.to_bytes(4, "big") for one in members)
    head = bytes((AS_SEQUENCE, len(octets) // 4)) if octets else b""
    return Attribute(AS_PATH, TRANSITIVE, head + octets)


def segments(value: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The segments of a path of 4-octet AS numbers: kind and members.

    Raises:
        MalformedError: it is cut short, or has a segment of no known kind.
    """
    at = 0
    while at < len(value):
        kind, count = value[at], value[at + 1] if at + 1 < len(value) else 0
        end = at + 2 + 4 * count
        if kind not in (AS_SET, AS_SEQUENCE) or count == 0 or end > len(value):
            raise _wrong("an AS_PATH is cut short or has an unknown segment", MALFORMED_AS_PATH)
        octets = value[at + 2 : end]
        yield kind, tuple(int.from_bytes(octets[i : i + 4], "big") for i in range(0, 4 * count, 4))
        at = end


def _split(octets: bytes) -> Iterator[Attribute]:
    at = 0
    while at < len(octets):
        flags = octets[at]
        head = 4 if flags & _EXTENDED else 3
        if at + head > len(octets):
            raise _wrong("an attribute is cut short", MALFORMED_LIST)
        size = int.from_bytes(octets[at + 2 : at + head], "big")
        end = at + head + size
        if end > len(octets):
            raise _wrong(f"attribute {octets[at + 1]} is cut short", MALFORMED_LIST)
        yield Attribute(octets[at + 1], flags & _FLAGS, octets[at + head : end])
        at = end


def _check(attribute: Attribute) -> None:
    """Hold an attribute against what is known of its code."""
    octets = attribute.encode()
    if attribute.code not in _KNOWN:
        if not attribute.flags & OPTIONAL:
            why = f"attribute {attribute.code} is well known elsewhere, not here"
            raise _wrong(why, UNKNOWN_WELL_KNOWN, octets)
        return
    flags, fits = _KNOWN[attribute.code]
    # Only what passes through those who do not know it can be partial.
    partial = PARTIAL if flags == OPTIONAL | TRANSITIVE else 0
    if attribute.flags & ~partial != flags:
        raise _wrong(f"attribute {attribute.code} has wrong flags", WRONG_FLAGS, octets)
    if not fits(len(attribute.value)):
        raise _wrong(f"attribute {attribute.code} has a wrong length", WRONG_LENGTH, octets)
    if attribute.code == ORIGIN and attribute.value[0] >= _ORIGINS:
        raise _wrong("an ORIGIN is none of the three", WRONG_ORIGIN, octets)
    if attribute.code == NEXT_HOP and not _is_host(attribute.value):
        raise _wrong("a NEXT_HOP is no address of a host", WRONG_NEXT_HOP, octets)
    if attribute.code == AS_PATH:
        as_path_length(attribute.value)


def _is_host(address: bytes) -> bool:
    """True of an address that a machine can have: not 0/8, loopback, multicast or above."""
    return address[0] not in (0, 127) and address[0] < 224


def _exactly(*sizes: int) -> Callable[[int], bool]:
    return lambda size: size in sizes


def _times(unit: int) -> Callable[[int], bool]:
    return lambda size: size > 0 and size % unit == 0


_KNOWN: Final[dict[int, tuple[int, Callable[[int], bool]]]] = {
    ORIGIN: (TRANSITIVE, _exactly(1)),
    AS_PATH: (TRANSITIVE, lambda _size: True),
    NEXT_HOP: (TRANSITIVE, _exactly(4)),
    MED: (OPTIONAL, _exactly(4)),
    LOCAL_PREF: (TRANSITIVE, _exactly(4)),
    ATOMIC_AGGREGATE: (TRANSITIVE, _exactly(0)),
    AGGREGATOR: (OPTIONAL | TRANSITIVE, _exactly(8)),
    COMMUNITIES: (OPTIONAL | TRANSITIVE, _times(4)),
    ORIGINATOR_ID: (OPTIONAL, _exactly(4)),
    CLUSTER_LIST: (OPTIONAL, _times(4)),
    LARGE_COMMUNITIES: (OPTIONAL | TRANSITIVE, _times(12)),
}


def known(attribute: Attribute) -> bool:
    """True of an attribute whose meaning this code knows."""
    return attribute.code in _KNOWN


def _wrong(why: str, subcode: int, data: bytes = b"") -> MalformedError:
    return MalformedError(why, UPDATE_ERROR, subcode, data)
