"""The stream of events: a snapshot, changes, going on after a break, and when that cannot be."""

import asyncio
import contextlib
import http.client
import json
import socket

import pytest

from haptera.api.app import make_app
from haptera.api.feed import CHANGES_KEPT, Feed, Mark, parse_mark
from haptera.api.server import Server, listen
from haptera.api.stream import ENTITIES_PER_EVENT, StreamRoute
from haptera.config import site_changes
from haptera.model.changes import Declare, SetDesired, Undeclare
from haptera.model.entity import node_id
from haptera.model.errors import HapteraError
from tests.api.fake_backend import FakeBackend
from tests.api.serving import WITHIN_S, serving

N1, N2 = node_id("n1"), node_id("n2")


class Stream:
    """A client of the stream, read event by event."""

    def __init__(self, one, last_id=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=WITHIN_S)
        headers = {"Authorization": "Bearer read-token"}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        self.connection.request("GET", "/v1/events", headers=headers)
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def next(self):
        fields = {}
        while (line := self.answer.readline().decode().rstrip("\n")) or not fields:
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
        data = json.loads(fields["data"])
        names = [one["entity"] for one in data["entities"]]
        return fields.get("id"), fields["event"], names, data["gone"]

    def ended(self):
        return self.answer.read() == b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.answer.close()
        self.connection.close()


@pytest.mark.net
def test_a_stream_begins_with_all_there_is_and_goes_on_with_what_changes():
    with serving(Declare(N1, {}, "site"), Declare(N2, {}, "site")) as one, Stream(one) as stream:
        assert stream.next()[1:] == ("snapshot", ["node:n1", "node:n2"], [])
        one.do(one.backend.write, SetDesired(N2, "power", "on", "site"))
        assert stream.next()[1:] == ("change", ["node:n2"], [])
        one.do(one.backend.write, Undeclare(N1))
        assert stream.next()[1:] == ("change", [], ["node:n1"])


@pytest.mark.net
def test_a_stream_that_broke_goes_on_where_it_was_and_misses_nothing():
    with serving(Declare(N1, {}, "site"), Declare(N2, {}, "site")) as one:
        with Stream(one) as stream:
            last_id, *_ = stream.next()
        one.do(one.backend.write, SetDesired(N2, "power", "on", "site"))
        one.do(one.backend.write, SetDesired(N1, "power", "on", "site"))
        with Stream(one, last_id) as resumed:
            assert resumed.next()[1:] == ("change", ["node:n1", "node:n2"], [])


@pytest.mark.net
def test_a_place_of_another_process_is_gone():
    with serving(Declare(N1, {}, "site")) as one, Stream(one) as stream:
        last_id, *_ = stream.next()
    with serving(Declare(N1, {}, "site")) as one, Stream(one, last_id) as stream:
        assert stream.status == 410
        assert json.loads(stream.answer.read())["do"].startswith("begin anew without it")


@pytest.mark.net
def test_after_an_overrun_streams_end_and_begin_anew_with_a_snapshot():
    with serving(Declare(N1, {}, "site"), queue_size=3) as one:
        with Stream(one) as stream:
            last_id, *_ = stream.next()
            one.do(lambda: [one.backend.publish(N1) for _ in range(5)])
            assert stream.ended()
        with Stream(one, last_id) as late:
            assert late.status == 410
        with Stream(one) as anew:
            assert anew.next()[1] == "snapshot"
            one.do(one.backend.publish, N1)
            assert anew.next()[1:3] == ("change", ["node:n1"])


@pytest.mark.net
def test_a_server_that_stops_lets_its_streams_end():
    with contextlib.ExitStack() as stack:
        with serving(Declare(N1, {}, "site")) as one:
            stream = stack.enter_context(Stream(one))
            stream.next()
        assert stream.ended()


@pytest.mark.net
def test_a_cancelled_server_ends_its_streams_and_frees_its_port():
    async def run(listener):
        server = Server(make_app(FakeBackend(), site_changes, cluster="quick"), listener)
        serving_task = asyncio.ensure_future(server.run())
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        writer.write(
            b"GET /v1/events HTTP/1.0\r\nHost: localhost\r\n"
            b"Authorization: Bearer read-token\r\n\r\n"
        )
        await reader.readuntil(b"snapshot")
        serving_task.cancel()
        await reader.read()
        writer.close()
        with contextlib.suppress(asyncio.CancelledError):
            await serving_task

    with contextlib.closing(listen("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        asyncio.run(asyncio.wait_for(run(listener), WITHIN_S))
    listen("127.0.0.1", port).close()


@pytest.mark.net
def test_a_port_in_use_is_told_with_what_to_do():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HapteraError) as raised:
            listen("127.0.0.1", port)
    assert raised.value.what == "cannot listen: Address already in use"
    assert raised.value.where == f"127.0.0.1:{port}/tcp"
    assert raised.value.do


def fed(backend, feed, *numbers):
    """Have the feed take in changes of n1 with these numbers."""

    async def run():
        task = asyncio.ensure_future(feed.run())
        await asyncio.sleep(0)
        for number in numbers:
            backend.subscriptions[-1].put((number, (N1,)))
        await feed.wait(WITHIN_S)
        task.cancel()

    asyncio.run(run())
    assert feed.latest.number == numbers[-1]


def test_what_is_older_than_the_feed_keeps_is_not_there():
    backend = FakeBackend(queue_size=CHANGES_KEPT * 2)
    feed = Feed(backend)
    begin = feed.latest
    fed(backend, feed, *range(1, CHANGES_KEPT + 2))
    assert not feed.has(begin)
    assert feed.has(Mark(begin.epoch, 1))
    assert not feed.has(Mark(begin.epoch, CHANGES_KEPT + 2))
    assert feed.since(Mark(begin.epoch, 1)) == [N1]


def test_a_long_snapshot_comes_in_slices_and_only_the_last_names_its_place():
    backend = FakeBackend()
    count = ENTITIES_PER_EVENT * 2 + 1
    backend.write(*(Declare(node_id(f"n{number}"), {}, "site") for number in range(count)))
    texts, mark = StreamRoute(backend, Feed(backend), "quick").texts_since(None)
    assert [text.partition("\ndata: ")[0] for text in texts] == [
        "event: snapshot",
        "event: change",
        f"id: {mark}\nevent: change",
    ]
    data = [json.loads(text.partition("data: ")[2]) for text in texts]
    assert sum(len(one["entities"]) for one in data) == count


def test_what_is_no_mark_is_none():
    assert parse_mark("7-ab.12") == Mark("7-ab", 12)
    for text in ("", "7", "7.", "7.x", "7.-1", "7.\u0663", "7." + "9" * 40):
        assert parse_mark(text) is None
