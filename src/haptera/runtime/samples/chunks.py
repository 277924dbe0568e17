"""Chunks: one entity's measurements of a while as bytes, by series, small, each self-contained."""

import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import msgspec

from haptera.model.samples import Point

# The limit of a decompressed chunk: this code writes none that is larger.
CHUNK_BYTES_MAX: Final = 16 << 20
_LEVEL: Final = 1

# When, which series, and their numbers in that order.
Measured: TypeAlias = "tuple[float, tuple[str, ...], array[float]]"


class _Columns(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Series that were measured together: when, and the numbers, one series after the other."""

    names: list[str]
    at_ms: list[int]
    values: bytes


class _Steps(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The points of one series: when each begins, then all `low`, `mean` and `high`."""

    name: str
    at_s: list[int]
    counts: list[int]
    values: bytes


_ENCODER: Final = msgspec.msgpack.Encoder()
_COLUMNS: Final = msgspec.msgpack.Decoder(list[_Columns])
_STEPS: Final = msgspec.msgpack.Decoder(list[_Steps])
# The exceptions that bytes raise which are no chunk.
_FAULTS: Final = (zlib.error, ValueError, RecursionError)


def encode_raw(measured: Iterable[Measured]) -> bytes:
    """All that was measured, to the millisecond."""
    together: dict[tuple[str, ...], tuple[list[int], array[float]]] = {}
    for at, names, values in measured:
        at_ms, numbers = together.setdefault(names, ([], array("d")))
        at_ms.append(round(at * 1_000))
        numbers.extend(values)
    columns = [
        _Columns(list(names), _differences(at_ms), _by_column(numbers, len(names)))
        for names, (at_ms, numbers) in together.items()
    ]
    return zlib.compress(_ENCODER.encode(columns), _LEVEL)


def decode_raw(packed: bytes) -> dict[str, list[tuple[float, float]]] | None:
    """The measurements of each series, in the order of arrival; None where this is no chunk.

    Chunks that were joined are read one after the other.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    try:
        for content in _decompressed(packed):
            for one in _COLUMNS.decode(content):
                at_s = [at / 1_000 for at in _sums(one.at_ms)]
                for name, values in _columns(one.values, one.names, len(at_s)):
                    found.setdefault(name, []).extend(zip(at_s, values, strict=True))
    except _FAULTS:
        return None
    return found


def encode_points(series: Mapping[str, list[Point]]) -> bytes:
    """The points of each series."""
    steps = [
        _Steps(
            name,
            _differences([int(one.at) for one in points]),
            [one.count for one in points],
            array(
                "d",
                [
                    *(one.low for one in points),
                    *(one.mean for one in points),
                    *(one.high for one in points),
                ],
            ).tobytes(),
        )
        for name, points in series.items()
    ]
    return zlib.compress(_ENCODER.encode(steps), _LEVEL)


def decode_points(packed: bytes) -> dict[str, list[Point]] | None:
    """The points of each series; None where this is no chunk."""
    found: dict[str, list[Point]] = {}
    try:
        for content in _decompressed(packed):
            for one in _STEPS.decode(content):
                lows, means, highs = (
                    values for _, values in _columns(one.values, "lmh", len(one.counts))
                )
                found.setdefault(one.name, []).extend(
                    Point(float(at), low, mean, high, count)
                    for at, low, mean, high, count in zip(
                        _sums(one.at_s), lows, means, highs, one.counts, strict=True
                    )
                )
    except _FAULTS:
        return None
    return found


def _by_column(numbers: "array[float]", width: int) -> bytes:
    return b"".join(numbers[column::width].tobytes() for column in range(width))


def _columns(
    packed: bytes, names: Iterable[str], count: int
) -> Iterator[tuple[str, "array[float]"]]:
    values = array("d", packed)
    for place, name in enumerate(names):
        yield name, values[place * count : (place + 1) * count]


def _differences(values: list[int]) -> list[int]:
    return [now - before for now, before in zip(values, [0, *values], strict=False)]


def _sums(differences: list[int]) -> Iterator[int]:
    total = 0
    for one in differences:
        total += one
        yield total


def _decompressed(packed: bytes) -> Iterator[bytes]:
    while packed:
        one = zlib.decompressobj()
        yield one.decompress(packed, CHUNK_BYTES_MAX)
        if one.unconsumed_tail or not one.eof:
            raise ValueError("a chunk that is cut, or too long")
        packed = one.unused_data
