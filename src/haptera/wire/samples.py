"""Numbers that were measured, as sections of datagrams that carry nothing else.

A node names what is on it, and never itself: whose numbers they are, the session tells.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Final

import msgspec

from haptera.model.entity import NAME_BYTES_MAX
from haptera.model.reading import ITEM_BYTES_MAX, READING_BYTES_MAX, SERIES_MAX
from haptera.model.samples import Measurement
from haptera.model.walltime import AgeMs
from haptera.wire.frame import CONTENT_BYTES_MAX, FrameFault, Reject
from haptera.wire.sync import beside, sections_beside

SAMPLES: Final = 16
# A name, and an item in brackets.
SERIES_BYTES_MAX: Final = READING_BYTES_MAX + ITEM_BYTES_MAX + 2
# The size of a value beside the name of its series: the name's head, and a float.
_VALUE_BYTES: Final = 2 + 9
# The most of a section's rest: the heads of its list and map, two names, an age.
_HEAD_BYTES: Final = 1 + 3 + 2 * (2 + NAME_BYTES_MAX) + 9

_Name = Annotated[str, msgspec.Meta(max_length=NAME_BYTES_MAX)]
_Series = Annotated[str, msgspec.Meta(max_length=SERIES_BYTES_MAX)]


class _Measured(msgspec.Struct, frozen=True, gc=False, array_like=True):
    kind: _Name
    name: _Name
    age_ms: AgeMs
    values: Annotated[dict[_Series, float], msgspec.Meta(max_length=SERIES_MAX)]


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Measured)


def encode_samples(told: bytes, measured: Measurement) -> Iterator[bytes]:
    """The bodies that carry measurements, for a peer whose last body was this one."""
    for values in _split(measured.values):
        one = _Measured(measured.kind, measured.name, measured.age_ms, values)
        yield beside(told, SAMPLES, _ENCODER.encode(one))


def decode_samples(body: bytes) -> list[Measurement] | Reject | None:
    """The measurements in an authentic body; None where it carries something else."""
    sections = sections_beside(body)
    if sections is None:
        return None
    found: list[Measurement] = []
    for section in sections:
        if isinstance(section, Reject):
            return section
        if section[0] != SAMPLES:
            continue
        try:
            one = _DECODER.decode(section[1])
        except (ValueError, RecursionError):
            return Reject(FrameFault.SECTION)
        found.append(Measurement(one.kind, one.name, one.age_ms, one.values))
    return found


def _split(values: Mapping[str, float]) -> Iterable[dict[str, float]]:
    """As many at once as one section has room for."""
    room, some = CONTENT_BYTES_MAX - _HEAD_BYTES, dict[str, float]()
    for series, value in values.items():
        size = len(series) + _VALUE_BYTES
        if size > room and some:
            yield some
            room, some = CONTENT_BYTES_MAX - _HEAD_BYTES, {}
        some[series] = value
        room -= size
    yield some
