"""What the kernel drops for a socket, on real ones, against a plain model of it."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.runtime.network.muted import MUTED_MAX, Muted, MutedLine
from haptera.wire.frame import HEADER_BYTES, INDEX_OFFSET
from tests.network import NETWORK, ipv6_loopback

pytestmark = pytest.mark.net

DEADLINE_S = 60
SESSIONS = (0, 1, (1 << 32) - 1)
LAST = 7
# Two of them differ in their port only, or in their address only.
FAMILIES = {
    socket.AF_INET: (f"{NETWORK}.51.1", f"{NETWORK}.51.1", f"{NETWORK}.51.2"),
    socket.AF_INET6: ("::1", "::1", "::1"),
}


def bound(family: socket.AddressFamily, host: str) -> socket.socket:
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.bind((host, 0))
    made.settimeout(DEADLINE_S)
    return made


def datagram(session: int) -> bytes:
    return bytes(INDEX_OFFSET) + session.to_bytes(4) + bytes(HEADER_BYTES - INDEX_OFFSET - 4)


def is_muted(line: MutedLine, session: int, address: tuple[str, int]) -> bool:
    there = address == (line.host, line.port)
    return line.receiver == session and there is not line.elsewhere


def got(receiver: socket.socket) -> Iterator[tuple[int, tuple[str, int]]]:
    """Which sessions' datagrams came from where, to the last one."""
    while (said := receiver.recvfrom(100))[0] != datagram(LAST):
        yield int.from_bytes(said[0][INDEX_OFFSET : INDEX_OFFSET + 4]), said[1][:2]


@pytest.fixture(name="family", params=FAMILIES, ids=["ipv4", "ipv6"], scope="module")
def _family(request: pytest.FixtureRequest) -> Iterator[socket.AddressFamily]:
    with ExitStack() as stack:
        if request.param is socket.AF_INET6:
            stack.enter_context(ipv6_loopback())
        yield request.param


LINES = st.tuples(st.sampled_from(SESSIONS), st.integers(0, 2), st.booleans())


@given(wanted=st.lists(LINES, max_size=6, unique=True), again=st.integers(0, 6))
def test_just_what_is_muted_does_not_arrive(
    family: socket.AddressFamily, wanted: list[tuple[int, int, bool]], again: int
) -> None:
    with ExitStack() as stack:
        receiver, *senders = (
            stack.enter_context(bound(family, host))
            for host in (FAMILIES[family][0], *FAMILIES[family])
        )
        places = [one.getsockname()[:2] for one in senders]
        muted = Muted(receiver)
        lines = [MutedLine(session, *places[at], elsewhere) for session, at, elsewhere in wanted]
        assert [muted.add(one) for one in lines] == [True] * len(lines)
        for one in lines[:again]:
            muted.remove(one)
        for sender in senders:
            for session in SESSIONS:
                sender.sendto(datagram(session), receiver.getsockname())
        senders[0].sendto(datagram(LAST), receiver.getsockname())

        assert sorted(got(receiver)) == sorted(
            (session, place)
            for session in SESSIONS
            for place in places
            if not any(is_muted(one, session, place) for one in lines[again:])
        )


def test_so_many_are_muted_at_once_and_each_once() -> None:
    with bound(socket.AF_INET, FAMILIES[socket.AF_INET][0]) as receiver:
        muted = Muted(receiver)
        lines = [MutedLine(number, "2001:db8::1", 4270, True) for number in range(MUTED_MAX + 1)]
        assert [muted.add(one) for one in lines] == [True] * MUTED_MAX + [False]
        assert not muted.add(lines[0])
        muted.remove(lines[0])
        assert muted.add(lines[-1])
