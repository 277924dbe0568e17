"""Connections that ask for nothing: they give way, they end, and nobody else notices."""

import http.client
import json
import socket
import time
from collections import Counter
from contextlib import ExitStack, contextmanager

import pytest

from haptera.model.changes import Declare
from haptera.model.entity import node_id
from tests.api.serving import WITHIN_S, serving

pytestmark = pytest.mark.net

CONNECTIONS_MAX = 32
N1 = Declare(node_id("n1"), {}, "site")


@contextmanager
def idle(port, count, said=b"GET /v1/health HTTP/1.1\r\nHost: "):
    """So many connections that say this and nothing more."""
    with ExitStack() as stack:
        ends = [stack.enter_context(connected(port)) for _ in range(count)]
        for end in ends:
            end.sendall(said)
        yield ends


def connected(port):
    return socket.create_connection(("127.0.0.1", port), timeout=WITHIN_S)


def health(port):
    asking = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN_S)
    asking.request("GET", "/v1/health")
    answer = asking.getresponse()
    told = answer.status, json.loads(answer.read())["status"]
    asking.close()
    return told


def is_over(end):
    """That the other side ended it; waits until it does."""
    try:
        return end.recv(1) == b""
    except ConnectionResetError:
        return True


def test_however_many_say_nothing_who_asks_is_answered():
    counts = Counter()
    with (
        serving(connections_max=CONNECTIONS_MAX, counts=counts) as server,
        idle(server.port, 10 * CONNECTIONS_MAX) as ends,
    ):
        assert [health(server.port) for _ in range(5)] == [(200, "ok")] * 5
        assert is_over(ends[0])  # the oldest gave way
        assert counts["gave way"] >= 9 * CONNECTIONS_MAX
        assert not counts["refused"]


def test_half_a_header_is_waited_for_so_long_and_not_longer():
    with serving(within_s=0.2) as server, idle(server.port, 3) as ends:
        assert [is_over(end) for end in ends] == [True] * 3


def test_a_header_that_comes_in_drops_is_not_waited_for_longer():
    with serving(within_s=0.3) as server, connected(server.port) as end:
        end.sendall(b"GET /v1/health HTTP/1.1\r\n")
        until = time.monotonic() + WITHIN_S
        try:
            while time.monotonic() < until:
                end.sendall(b"X-Drop: 1\r\n")
                end.settimeout(0.05)
                try:
                    assert end.recv(1) == b""
                    break
                except TimeoutError:
                    continue
            else:
                pytest.fail("it was waited for")
        except (ConnectionResetError, BrokenPipeError):
            pass


def test_who_is_being_answered_does_not_give_way():
    with serving(N1, connections_max=CONNECTIONS_MAX) as server, connected(server.port) as stream:
        header = "Host: 127.0.0.1\r\nAuthorization: Bearer read-token"
        stream.sendall(f"GET /v1/events HTTP/1.1\r\n{header}\r\n\r\n".encode())
        reader = stream.makefile("rb")
        assert reader.readline() == b"HTTP/1.1 200 OK\r\n"
        with idle(server.port, 4 * CONNECTIONS_MAX):
            assert health(server.port) == (200, "ok")
            server.do(server.backend.write, Declare(node_id("n2"), {}, "site"))
            said = iter(reader.readline, b"")
            assert any(b"node:n2" in line for line in said)


def test_requests_that_are_sent_ahead_are_answered_in_order():
    with serving() as server, connected(server.port) as end:
        one = b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        end.sendall((one + b"\r\n") * 2 + one + b"Connection: close\r\n\r\n")
        said = b"".join(iter(lambda: end.recv(65_536), b""))
    assert said.count(b"HTTP/1.1 200 OK") == 3
