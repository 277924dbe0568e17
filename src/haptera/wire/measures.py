"""How long a part usually takes where it runs, one a section."""

from typing import Annotated, Final

import msgspec

from haptera.model.entity import NAME_BYTES_MAX
from haptera.model.messages import Measure
from haptera.wire.frame import FrameFault, Reject

MEASURE: Final = 5
# MODULE.PART
PART_BYTES_MAX: Final = 2 * NAME_BYTES_MAX + 1
# Some 35 years: no part takes longer.
USUAL_MS_MAX: Final = 1 << 40


class _Measure(msgspec.Struct, frozen=True, gc=False, array_like=True):
    part: Annotated[str, msgspec.Meta(max_length=PART_BYTES_MAX)]
    usual_ms: Annotated[int, msgspec.Meta(ge=0, le=USUAL_MS_MAX)]


_ENCODER: Final = msgspec.msgpack.Encoder()
_MEASURE: Final = msgspec.msgpack.Decoder(_Measure)


def encode_measure(measure: Measure) -> bytes:
    assert len(measure.part.encode()) <= PART_BYTES_MAX
    return _ENCODER.encode(_Measure(measure.part, min(measure.usual_ms, USUAL_MS_MAX)))


def decode_measure(section: int, content: bytes) -> Measure | Reject | None:
    """A measure; None for a section of another type."""
    if section != MEASURE:
        return None
    try:
        told = _MEASURE.decode(content)
    except (ValueError, RecursionError):
        return Reject(FrameFault.SECTION)
    return Measure(told.part, told.usual_ms)
