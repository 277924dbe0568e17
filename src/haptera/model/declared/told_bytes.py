"""What an entity takes in one datagram at most, by what its kind declares.

These are the sizes of MessagePack, which the wire speaks; a test holds the two together.
"""

from collections.abc import Sequence
from typing import Final

# What a datagram has room for, beside its header, seal and the section's own header.
TOLD_BYTES_MAX: Final = 1_035
# The entity's name and its node's, the version, and the heads of what has them.
_DESIRED_HEAD: Final = 146
# These, and where the entity stands, in words. Notes have what room is left.
_OBSERVED_HEAD: Final = 497
_INTEGER: Final = 9
# Of each value, how old it is and who saw it; of so many who did, the name.
_PROVENANCE: Final = 12
_NAMED_MAX: Final = 8
_BY: Final = 34
# What is in force is told by name: a digest, how it was learnt, and whether it is known.
_DIGEST: Final = 64
_ENTRIES_SMALL: Final = 15


def text_bytes(size_bytes: int) -> int:
    """What a text of so many bytes takes.

    >>> [text_bytes(31), text_bytes(32), text_bytes(256)]
    [32, 34, 259]
    """
    return size_bytes + (1 if size_bytes < 1 << 5 else 2 if size_bytes < 1 << 8 else 3)


def desired_bytes(kind: str, bits: int, data: Sequence[tuple[str, int | None]]) -> int:
    """What is told of what is desired: names with the sizes of their texts, None for an integer."""
    taken = sum(
        text_bytes(len(name)) + (_INTEGER if size is None else text_bytes(size))
        for name, size in data
    )
    heads = 0 if len(data) <= _ENTRIES_SMALL else 4
    return _DESIRED_HEAD + text_bytes(len(kind)) + _words(bits) + heads + taken


def observed_bytes(kind: str, bits: int, count: int, in_force: Sequence[str]) -> int:
    """What is told of what was observed, of so many variables; some say what is in force."""
    seen = _PROVENANCE * count + _BY * min(count, _NAMED_MAX)
    named = sum(text_bytes(len(name)) + _DIGEST for name in in_force)
    return _OBSERVED_HEAD + text_bytes(len(kind)) + _words(bits) + seen + named


def _words(bits: int) -> int:
    """Packed values, in words of 64 bits, each as small as its highest bit lets it be."""
    whole, rest = divmod(bits, 64)
    last = next(size for most, size in _SIZES if rest <= most)
    return whole * _INTEGER + last


_SIZES: Final = ((0, 0), (7, 1), (8, 2), (16, 3), (32, 5), (64, 9))
