"""Frames on a stream: a length in four bytes, then one MessagePack map with text keys."""

from struct import Struct
from typing import Any, Final

import msgspec

from haptera.wire.frame import FrameFault, Reject

FRAME_BYTES_MAX: Final = 1 << 20

_LENGTH: Final = Struct(">I")
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(dict[str, Any])


def encode_frame(content: dict[str, Any]) -> bytes:
    """One frame.

    >>> encode_frame({"ok": 1}).hex(" ")
    '00 00 00 05 81 a2 6f 6b 01'

    Raises:
        ValueError: it takes more than `FRAME_BYTES_MAX`, which the other side would refuse.
    """
    packed = _ENCODER.encode(content)
    if len(packed) > FRAME_BYTES_MAX:
        raise ValueError(f"a frame of {len(packed)} bytes; at most {FRAME_BYTES_MAX} are taken")
    return _LENGTH.pack(len(packed)) + packed


class Frames:
    """Puts frames together from a stream that is cut anywhere.

    After a `Reject` the stream has no beginning that could be found again: it is to be closed.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._broken = False

    def feed(self, data: bytes) -> list[dict[str, Any]] | Reject:
        """The frames that these bytes complete, in order."""
        self._buffer += data
        whole: list[dict[str, Any]] = []
        start = 0
        while not self._broken and (end := self._end_of_frame(start)) is not None:
            content = _decode(bytes(self._buffer[start + _LENGTH.size : end]))
            if content is None:
                self._broken = True
                break
            whole.append(content)
            start = end
        if self._broken:
            self._buffer.clear()
            return Reject(FrameFault.FRAME)
        del self._buffer[:start]
        return whole

    def _end_of_frame(self, start: int) -> int | None:
        """Where the frame that begins here ends; None while it is not all there."""
        if len(self._buffer) - start < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer, start)
        self._broken = length > FRAME_BYTES_MAX
        end: int = start + _LENGTH.size + length
        return end if end <= len(self._buffer) and not self._broken else None


def _decode(packed: bytes) -> dict[str, Any] | None:
    try:
        return _DECODER.decode(packed)
    except (ValueError, RecursionError):
        return None
