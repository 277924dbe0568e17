"""The stream of events: a snapshot, changes, going on after a break, and when that cannot be."""

import asyncio
import contextlib
import functools
import http.client
import json
import socket

import pytest

from haptera.api.routes.stream import ENTITIES_PER_EVENT, STREAMS_EACH_MAX, StreamRoute
from haptera.api.serving.server import Server, listen
from haptera.model.answers.views import Condition
from haptera.model.changes import Declare, SetDesired, Undeclare
from haptera.model.entity import node_id
from haptera.model.errors import Code, HapteraError
from haptera.model.token_scope import Scope
from haptera.runtime.identity.tokens import Bearer
from haptera.selectors.subscription import Cursor, Subscription, parse_cursor
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend
from tests.api.serving import OWN, WITHIN_S, serving

N1, N2 = node_id("n1"), node_id("n2")


class Stream:
    """A client of the stream, read event by event."""

    def __init__(self, one, last_id=None, query="", token="read-token"):
        self.connection = http.client.HTTPConnection("127.0.0.1", one.port, timeout=WITHIN_S)
        headers = {"Authorization": f"Bearer {token}"}
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        self.connection.request("GET", f"/v1/events{query}", headers=headers)
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def next(self):
        fields = {}
        while (line := self.answer.readline().decode().rstrip("\n")) or not fields:
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
        data = json.loads(fields["data"])
        self.types, self.left = data["types"], data["left"]
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
def test_one_caller_s_streams_leave_some_to_the_others():
    with serving() as server, contextlib.ExitStack() as stack:
        for _ in range(STREAMS_EACH_MAX):
            stream = stack.enter_context(Stream(server))
            assert stream.next()[1] == "snapshot"
        refused = stack.enter_context(Stream(server))
        told = json.loads(refused.answer.read())
        assert (refused.status, told["code"]) == (429, Code.TOO_MANY)
        other = stack.enter_context(Stream(server, token="write-token"))
        assert other.next()[1] == "snapshot"


def test_a_stream_begins_with_all_there_is_and_goes_on_with_what_changes():
    with serving(Declare(N1, {}, "site"), Declare(N2, {}, "site")) as one, Stream(one) as stream:
        assert stream.next()[1:] == ("snapshot", ["node:n1", "node:n2"], [])
        one.do(one.backend.write, SetDesired(N2, "power", "on", "site"))
        assert stream.next()[1:] == ("change", ["node:n2"], [])
        one.do(one.backend.write, Undeclare(N1))
        assert stream.next()[1:] == ("change", [], ["node:n1"])


def limited(one, within):
    """A token of a served backend that is limited, and how it is taken back."""
    backend = one.backend
    minted = asyncio.run(backend.tokens.mint(Bearer("eve", Scope.READ, within), 60))
    return minted.text, lambda: backend.tokens.minted.pop(minted.text)


@pytest.mark.net
def test_a_limited_token_is_told_of_nothing_else():
    with serving(Declare(N1, {}, "site"), Declare(N2, {}, "site")) as one:
        token, _ = limited(one, "n1")
        with Stream(one, token=token) as stream:
            last_id, *snapshot = stream.next()
            assert snapshot == ["snapshot", ["node:n1"], []]
            one.do(one.backend.write, Undeclare(N2), SetDesired(N1, "power", "on", "site"))
            assert stream.next()[1:] == ("change", ["node:n1"], [])
        one.do(one.backend.write, Declare(N2, {}, "site"))
        with Stream(one, last_id, token=token) as resumed:
            assert resumed.next()[1:] == ("change", ["node:n1"], [])
        with Stream(one, query="?select=n2", token=token) as stream:
            assert stream.next()[1:] == ("snapshot", [], [])
        with Stream(one, query="?select=power=on", token=token) as refused:
            assert refused.status == 403


@pytest.mark.net
def test_a_stream_ends_when_its_token_does():
    with serving(Declare(N1, {}, "site")) as one:
        token, take_back = limited(one, None)
        with Stream(one, token=token) as stream:
            stream.next()
            one.do(take_back)
            one.do(one.backend.write, SetDesired(N1, "power", "on", "site"))
            assert stream.ended()


@pytest.mark.net
def test_a_stream_that_broke_goes_on_where_it_was_and_misses_nothing():
    with serving(Declare(N1, {}, "site"), Declare(N2, {}, "site")) as one:
        with Stream(one) as stream:
            last_id, *_ = stream.next()
        one.do(one.backend.write, SetDesired(N2, "power", "on", "site"))
        one.do(one.backend.write, SetDesired(N1, "power", "on", "site"))
        with Stream(one, last_id) as resumed:
            assert resumed.next()[1:] == ("change", ["node:n2", "node:n1"], [])


@pytest.mark.net
def test_a_place_of_another_process_is_gone():
    with serving(Declare(N1, {}, "site")) as one, Stream(one) as stream:
        last_id, *_ = stream.next()
    with serving(Declare(N1, {}, "site")) as one, Stream(one, last_id) as stream:
        assert stream.status == 410
        assert json.loads(stream.answer.read())["code"] == Code.EVENTS_GONE


@pytest.mark.net
def test_a_stream_tells_only_what_is_asked_for():
    with serving(Declare(N1, {}, "site"), Declare(N2, {}, "site")) as one:
        query = "?types=condition,gone&kinds=node&select=n2"
        with Stream(one, query=query) as stream:
            assert stream.next()[1:] == ("snapshot", ["node:n2"], [])
            one.do(one.backend.write, SetDesired(N2, "power", "on", "site"))
            one.do(one.backend.say, N1, why="of no concern")
            one.do(one.backend.say, N2, why="it is")
            assert stream.next()[1:] == ("change", ["node:n2"], [])
            assert stream.types == {"node:n2": ["condition"]}
            one.do(one.backend.write, Undeclare(N2))
            assert stream.next()[1:] == ("change", [], ["node:n2"])


@pytest.mark.net
def test_a_stream_by_state_tells_what_comes_to_be_so_and_what_no_longer_is():
    with serving(Declare(N1, {}, "site"), Declare(N2, {}, "site")) as one:
        one.do(one.backend.say, N1, condition=Condition.STUCK)
        with Stream(one, query="?select=condition=stuck") as stream:
            last_id, *first = stream.next()
            assert first == ["snapshot", ["node:n1"], []]
            one.do(one.backend.say, N2, condition=Condition.ACTING)  # of no concern
            one.do(one.backend.say, N2, condition=Condition.STUCK)
            assert stream.next()[1:] == ("change", ["node:n2"], [])
            one.do(one.backend.say, N1, condition=Condition.CONVERGED)
            assert stream.next()[1:] == ("change", [], [])
            assert stream.left == ["node:n1"]
            one.do(one.backend.write, Undeclare(N1))  # it had left
            one.do(one.backend.write, Undeclare(N2))
            assert stream.next()[1:] == ("change", [], ["node:n2"])
        # What was shown before a break is not known: all that is so now is told again.
        one.do(one.backend.write, Declare(N1, {}, "site"))
        one.do(one.backend.say, N1, condition=Condition.STUCK)
        with Stream(one, last_id, query="?select=condition=stuck") as again:
            assert again.next()[1:] == ("snapshot", ["node:n1"], [])


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("select=age(agent)%3E1m", "age(agent)>1m: an age, or a number, changes without an event"),
        ("select=powr=on", "nothing has a 'powr'"),
        ("types=desired,moved", "there is no event type 'moved'"),
        ("types=", "there is no event type ''"),
        ("kinds=nod", "there is no kind 'nod'"),
        ("select=node:n[", None),
        ("select=", None),
    ],
)
def test_a_stream_of_what_there_is_not_is_refused(query, what):
    app = app_of(FakeBackend())
    answer = ask(app, "GET", f"/v1/events?{query}", token="read-token")
    assert answer.status == 400
    assert what in (None, answer.json["what"])
    assert answer.json["do"]


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
        server = Server(app_of(FakeBackend()), listener)
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

    with contextlib.closing(listen(OWN, 0)) as listener:
        port = listener.getsockname()[1]
        asyncio.run(asyncio.wait_for(run(listener), WITHIN_S))
    listen(OWN, port).close()


@pytest.mark.net
def test_a_port_in_use_is_told_with_what_to_do():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HapteraError) as raised:
            listen("127.0.0.1", port)
    assert raised.value.code == Code.CANNOT_LISTEN
    assert raised.value.where == f"127.0.0.1:{port}/tcp"
    assert raised.value.do


def test_a_long_snapshot_comes_in_slices_and_only_the_last_names_its_place():
    backend = FakeBackend()
    count = ENTITIES_PER_EVENT * 2 + 1
    backend.write(*(Declare(node_id(f"n{number}"), {}, "site") for number in range(count)))
    listener = backend.bus.listen(Subscription(), lambda: None)
    route = StreamRoute(backend, "quick")
    texts = [
        route.text(batch, None)
        for batch in iter(functools.partial(listener.drain, ENTITIES_PER_EVENT), None)
    ]
    assert [text.partition("\ndata: ")[0] for text in texts] == [
        "event: snapshot",
        "event: change",
        f"id: {backend.bus.latest}\nevent: change",
    ]
    data = [json.loads(text.partition("data: ")[2]) for text in texts]
    assert sum(len(one["entities"]) for one in data) == count


def test_what_is_no_cursor_is_none():
    assert parse_cursor("7-ab.12") == Cursor("7-ab", 12)
    for text in ("", "7", "7.", "7.x", "7.-1", "7.\u0663", "7." + "9" * 40):
        assert parse_cursor(text) is None
