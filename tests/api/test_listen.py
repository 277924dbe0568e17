"""The sockets that the API is served on."""

import asyncio
import socket

import pytest

from haptera.api.serving.server import listen

pytestmark = pytest.mark.net


def test_a_small_answer_waits_for_no_more():
    """Else each on a kept connection takes 40 ms: the kernel waits for more, the client for it."""

    async def undelayed():
        accepted = asyncio.get_running_loop().create_future()
        listener = listen("127.0.0.1", 0)
        server = await asyncio.start_server(lambda *ends: accepted.set_result(ends), sock=listener)
        async with server:
            _, ours = await asyncio.open_connection(*listener.getsockname())
            _, theirs = await accepted
            end = theirs.get_extra_info("socket")
            set_so = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            for one in (ours, theirs):
                one.close()
        return bool(set_so)

    assert asyncio.run(undelayed())
