"""One end of a stream of frames: what is sent at once goes at once, and before the link closes."""

import asyncio
import socket

import pytest

from haptera.runtime.processes.ipc import READ_BYTES, FrameLink
from haptera.wire.ipc import encode_frame

pytestmark = pytest.mark.net

FRAMES = [{"op": "cancel", "id": number} for number in range(3)]
TOGETHER = b"".join(map(encode_frame, FRAMES))


def pair() -> tuple[FrameLink, socket.socket]:
    """A link, and its other end: of packets, so that it tells what was sent together."""
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    theirs.setblocking(False)
    return FrameLink(ours, lambda _: None, lambda _: None), theirs


def test_what_is_sent_before_the_loop_goes_on_is_sent_together() -> None:
    async def hold() -> bytes:
        link, theirs = pair()
        for frame in FRAMES:
            link.send(frame)
        with theirs:
            sent = await asyncio.get_running_loop().sock_recv(theirs, READ_BYTES)
            link.close()
        return sent

    assert asyncio.run(hold()) == TOGETHER


def test_what_was_sent_before_a_link_is_closed_still_goes() -> None:
    async def hold() -> list[bytes]:
        link, theirs = pair()
        for frame in FRAMES:
            link.send(frame)
        link.close()
        with theirs:
            return [theirs.recv(READ_BYTES), theirs.recv(READ_BYTES)]

    assert asyncio.run(hold()) == [TOGETHER, b""]
