"""Accepting while the process has no descriptor left: it is said once, and goes on after."""

import asyncio
import os
import resource
import socket
from contextlib import contextmanager

import pytest

from haptera.runtime.network import accepting
from haptera.runtime.network.accepting import Accepting, make_room, share_of

pytestmark = pytest.mark.net

WITHIN_S = 60


@contextmanager
def limited(count):
    """So many descriptors and no more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def lowest_free():
    free = os.dup(0)
    os.close(free)
    return free


class Counted(socket.socket):
    """A listening socket that counts how often a connection was asked of it."""

    tries = 0

    def accept(self):
        self.tries += 1
        return super().accept()


async def test_without_descriptors_it_rests_says_so_once_and_goes_on(caplog):
    with Counted(fileno=socket.create_server(("127.0.0.1", 0)).detach()) as listener:
        callers = [socket.create_connection(listener.getsockname()) for _ in range(3)]
        taken = Accepting(listener)
        with limited(lowest_free()):
            begun = asyncio.get_running_loop().time()
            waiting = asyncio.ensure_future(taken.next())
            await asyncio.wait([waiting], timeout=3 * accepting.AGAIN_S)
            assert not waiting.done()
            took_s = asyncio.get_running_loop().time() - begun
            assert 1 < listener.tries <= 1 + took_s / accepting.AGAIN_S
        async with asyncio.timeout(WITHIN_S):
            ends = [await waiting, await taken.next(), await taken.next()]
        assert [address for _, address in ends] == ["127.0.0.1"] * 3
        for one in (*callers, *(end for end, _ in ends)):
            one.close()
    assert [record.getMessage() for record in caplog.records] == [
        "no connection can be accepted: Too many open files",
        "connections are accepted again",
    ]


def test_connections_leave_descriptors_for_the_rest():
    with limited(1_024):
        # All that may be open at once, and the reserve, fit.
        assert share_of(512, 960) + share_of(448, 960) <= 1_024 - accepting.DESCRIPTORS_RESERVED
    with limited(4_096):
        assert share_of(512, 960) == 512


def test_a_process_takes_as_many_descriptors_as_it_may():
    with limited(256):
        make_room()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft == min(hard, 65_536)
