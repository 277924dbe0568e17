"""Messages of a connection: each a frame, of one of the shapes that may be said there."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from haptera.wire.frame import Reject
from haptera.wire.ipc import FRAME_BYTES_MAX, Frames, encode_frame

_READ_BYTES: Final = 64 * 1024


def pack(said: msgspec.Struct) -> bytes:
    """One frame.

    Raises:
        ValueError: it is longer than a frame may be.
    """
    return encode_frame(msgspec.to_builtins(said, builtin_types=(bytes,)))


async def hear_each(reader: asyncio.StreamReader, shape: Any) -> AsyncIterator[Any]:
    """All that is said, as it comes; None is the last where it is none of these."""
    frames = Frames()
    while data := await reader.read(_READ_BYTES):
        whole = frames.feed(data)
        for content in () if isinstance(whole, Reject) else whole:
            yield _read(content, shape)
        if isinstance(whole, Reject):
            yield None
            return


async def hear(
    reader: asyncio.StreamReader, shape: Any, size_bytes_max: int = 2 * FRAME_BYTES_MAX
) -> Any:
    """The first thing said; None where the other side hangs up, or it is too long or none of these.

    `shape` may be a union, as mypy does not take it for a type.
    """
    frames, size_bytes = Frames(), 0
    while data := await reader.read(_READ_BYTES):
        size_bytes += len(data)
        whole = frames.feed(data)
        if isinstance(whole, Reject) or size_bytes > size_bytes_max:
            return None
        if whole:
            return _read(whole[0], shape)
    return None


def _read(content: dict[str, Any], shape: Any) -> Any:
    try:
        return msgspec.convert(content, shape, builtin_types=(bytes,))
    except msgspec.ValidationError:
        return None
