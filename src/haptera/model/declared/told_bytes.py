"""The size of an entity's desired state in its one datagram, in real bytes."""

from collections.abc import Mapping
from typing import Final

import msgspec

from haptera.model.declared.schema import WORD_BITS, Kind
from haptera.model.entity import EntityId
from haptera.model.errors import LimitError

# What a datagram has room for, beside its header, seal and the section's own header.
ENTITY_BYTES_MAX: Final = 1_035
# The error names the sizes of so many parts, the largest first.
PARTS_TOLD_MAX: Final = 6
# Beside the desired state a datagram has its version, the flag `gone`, and its packed words.
_VERSION_MAX: Final = (1 << 64) - 1
_WORD_BYTES: Final = 9
# The head of a map.
_EMPTY_BYTES: Final = 1

Values = Mapping[str, str | int]


def check_size(kind: Kind, entity: EntityId, values: Values, attributes: Mapping[str, str]) -> None:
    """See that what is desired of an entity fits one datagram, each value in its real size.

    Raises:
        LimitError: it does not; with the bytes of each part.
    """
    named = {name: value for name, value in values.items() if kind.variable(name) is None}
    packed_bytes = _words(kind.bits)
    size_bytes = _size(entity, named, attributes) + packed_bytes
    if size_bytes <= ENTITY_BYTES_MAX:
        return
    given = *named.items(), *attributes.items()
    parts = {name: _size_of({name: one}) - _EMPTY_BYTES for name, one in given}
    parts |= {"its names": _size(entity, {}, {}), "its variables": packed_bytes}
    told = sorted(parts.items(), key=lambda one: (-one[1], one[0]))
    shown = ", ".join(f"{name} {taken}" for name, taken in told[:PARTS_TOLD_MAX])
    if rest := sum(taken for _, taken in told[PARTS_TOLD_MAX:]):
        shown += f", the rest {rest}"
    raise LimitError(
        f"{entity} takes {size_bytes} bytes, {ENTITY_BYTES_MAX} at most: {shown}",
        do="make some of it shorter, or leave it out",
    )


def text_bytes(size_bytes: int) -> int:
    """The size in MessagePack, the format of the wire, of a text of so many bytes.

    >>> [text_bytes(31), text_bytes(32), text_bytes(256)]
    [32, 34, 259]
    """
    return size_bytes + (1 if size_bytes < 1 << 5 else 2 if size_bytes < 1 << 8 else 3)


def _size(entity: EntityId, named: Values, attributes: Mapping[str, str]) -> int:
    names = entity.kind, entity.name, entity.node
    return _size_of([*names, _VERSION_MAX, False, [], dict(named), dict(attributes)])


def _size_of(told: object) -> int:
    return len(msgspec.msgpack.encode(told))


def _words(bits: int) -> int:
    """Packed values, in words of 64 bits, each as small as its highest bit lets it be."""
    whole, rest = divmod(bits, WORD_BITS)
    last = next(size for most, size in _SIZES if rest <= most)
    return whole * _WORD_BYTES + last


_SIZES: Final = ((0, 0), (7, 1), (8, 2), (16, 3), (32, 5), (64, 9))
