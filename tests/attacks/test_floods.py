"""Floods, each for seconds at full speed: other nodes and people are served, memory is bounded."""

import random
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

import pytest

from haptera.daemon.parts import HELLO_PORT
from haptera.daemon.settings import API_PORT
from haptera.runtime import clock
from haptera.wire.frame import HEADER_BYTES
from tests.attacks.rig import STRANGER_HOST, Attacked
from tests.attacks.test_datagrams import BOOT, with_part
from tests.faults.rig import PARENT_HOST, WEB

pytestmark = [pytest.mark.net, pytest.mark.campaign, pytest.mark.timeout(480)]

NODES, API = (PARENT_HOST, HELLO_PORT), (PARENT_HOST, API_PORT)
# So many times the others are served while it lasts, and it lasts at least so long.
TURNS = 4
FLOOD_NS = 2_000_000_000
# asyncio takes 256 KiB for each connection with TLS, of which 512 may wait.
GROWTH_BYTES_MAX = (64 << 20) + 512 * (256 << 10)
CONNECTIONS = 300
# Messages that say something new, sealed beforehand so that sending them is all that takes time.
CHANGED = 20_000

Flood = Callable[[Attacked, Callable[[], bool]], int]


def changed_messages(attacked: Attacked, over: Callable[[], bool]) -> int:
    """A node with its own key, and something new to say each time."""
    child = attacked.first
    bodies = [
        body
        for number in range(100)
        for body in child._bodies(
            *child._reporting(WEB, {"run": ("failed", "running")[number % 2]})
        )
    ]
    sealed = [child.session.seal(bodies[number % 100]) for number in range(CHANGED)]
    return send_all(attacked.first.socket, sealed, over)


def forged_boots(attacked: Attacked, over: Callable[[], bool]) -> int:
    datagram, rng = attacked.second.sent[-1], random.Random(1)
    forged = [with_part(datagram, BOOT, rng.randbytes(8)) for _ in range(CHANGED)]
    with stranger() as end:
        return send_all(end, forged, over)


def copies(attacked: Attacked, over: Callable[[], bool]) -> int:
    with stranger() as end:
        return send_all(end, [attacked.second.sent[-1]] * CHANGED, over)


def noise(attacked: Attacked, over: Callable[[], bool]) -> int:
    header = attacked.second.sent[-1][:HEADER_BYTES]
    with stranger() as end:
        return send_all(end, [header + random.Random(1).randbytes(1_100)] * CHANGED, over)


def idle_connections(_: Attacked, over: Callable[[], bool]) -> int:
    return connect_all(API, b"GET /", over)


def half_handshakes(_: Attacked, over: Callable[[], bool]) -> int:
    return connect_all(NODES, b"\x16\x03", over)


def whole_handshakes(_: Attacked, over: Callable[[], bool]) -> int:
    """Whoever has no certificate of the cluster gets through the handshake, and claims nothing."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    done = 0
    while not over():
        with suppress(OSError), socket.create_connection(NODES, 5) as end:
            context.wrap_socket(end).close()
            done += 1
    return done


def strangers_requests(_: Attacked, over: Callable[[], bool]) -> int:
    asked = 0
    request = b"GET /v1/entities HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n\r\n"
    with closing(socket.create_connection(API, 20)) as end:
        while not over():
            end.sendall(request * 10)
            asked += end.recv(1 << 20).count(b"HTTP/1.1 401")
    return asked


@pytest.mark.parametrize(
    "flood",
    [
        changed_messages,
        forged_boots,
        copies,
        noise,
        idle_connections,
        half_handshakes,
        whole_handshakes,
        strangers_requests,
    ],
)
def test_others_are_served_in_the_middle_of_a_flood(attacked: Attacked, flood: Flood) -> None:
    attacked.serves()
    attacked.hears_the_second()
    before = attacked.resident_bytes()
    begun = clock.now_ns()
    with flooded(attacked, flood) as sent:
        turns = 0
        while turns < TURNS or clock.now_ns() - begun < FLOOD_NS:
            attacked.hears_the_second()
            assert attacked.parent.ask("GET", "/v1/summary")[0] == 200
            turns += 1
        grown = attacked.resident_bytes() - before
    (count,) = sent
    assert (count > 10, grown < GROWTH_BYTES_MAX) == (True, True), (count, grown)
    attacked.serves()


@contextmanager
def flooded(attacked: Attacked, flood: Flood) -> Iterator[list[int]]:
    """Flood from a thread of its own; how much was sent is told when it is over."""
    over, sent = threading.Event(), list[int]()
    thread = threading.Thread(target=lambda: sent.append(flood(attacked, over.is_set)))
    thread.start()
    try:
        yield sent
    finally:
        over.set()
        thread.join()


def stranger() -> closing[socket.socket]:
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind((STRANGER_HOST, 0))
    return closing(end)


def send_all(end: socket.socket, datagrams: list[bytes], over: Callable[[], bool]) -> int:
    sent = 0
    while not over():
        # The node's own socket does not wait for room.
        with suppress(BlockingIOError):
            end.sendto(datagrams[sent % len(datagrams)], NODES)
            sent += 1
    return sent


def connect_all(place: tuple[str, int], said: bytes, over: Callable[[], bool]) -> int:
    """Hold connections that have not said all of it yet, and open others where these end."""
    made = 0
    with ExitStack() as stack:
        while not over():
            with suppress(OSError):
                end = stack.enter_context(socket.create_connection(place, 5))
                end.sendall(said)
                made += 1
            if made % CONNECTIONS == 0:
                stack.pop_all().close()
    return made
