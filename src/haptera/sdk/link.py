"""A module's end of its link: frames as they come, until the daemon closes it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from haptera.model.errors import Code, HapteraError
from haptera.wire.frame import Reject
from haptera.wire.ipc import Frames

READ_BYTES = 65_536

Frame = dict[str, Any]


async def frames_of(reader: asyncio.StreamReader) -> AsyncIterator[Frame]:
    """Each frame as it comes.

    Raises:
        HapteraError: what came is no frame.
    """
    frames = Frames()
    while data := await _read(reader):
        fed = frames.feed(data)
        if isinstance(fed, Reject):
            raise HapteraError("malformed frame from the daemon", code=Code.VERSION_MISMATCH)
        for frame in fed:
            yield frame


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(READ_BYTES)
    except ConnectionError:
        # A daemon that was killed before it had read all that we said.
        return b""
