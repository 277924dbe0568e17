"""Both clients on a real server: what holds for one holds for the other."""

import asyncio

import pytest

from haptera.client import (
    Access,
    ApiCall,
    AsyncClient,
    Broken,
    Client,
    RefusedError,
    UnreachableError,
    calls,
)
from haptera.model.answers.views import Condition
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from haptera.model.errors import HapteraError
from haptera.rest.schemas import Event
from haptera.rest.unix_path import PATH_BYTES_MAX
from tests.api.serving import OWN, serving

N1, N2 = node_id("n1"), node_id("n2")
POWERED = (Declare(N1, {}, "site"), SetDesired(N1, "power", "on", "site"))

pytestmark = pytest.mark.net


class Blocking:
    """The client that waits."""

    def __init__(self, access, waiting=None):
        self._client = Client(access, waiting)

    def ask(self, *asked):
        return [self._client.ask(one) for one in asked]

    def tagged(self, call):
        return self._client.tagged(call)

    def news(self, call):
        return self._client.follow(call)

    def close(self):
        self._client.close()


class OnAsyncio:
    """The client on asyncio, in a loop that runs while it is asked."""

    def __init__(self, access, waiting=None):
        self._client = AsyncClient(access, waiting)
        self._loop = asyncio.Runner()

    def ask(self, *asked):
        async def together():
            return await asyncio.gather(*(self._client.ask(one) for one in asked))

        return self._loop.run(together())

    def tagged(self, call):
        return self._loop.run(self._client.tagged(call))

    def news(self, call):
        stream = self._client.follow(call)

        async def following():
            return await anext(stream)

        try:
            while True:
                yield self._loop.run(following())
        finally:
            self._loop.run(stream.aclose())

    def close(self):
        self._client.close()
        self._loop.close()


@pytest.fixture(params=[Blocking, OnAsyncio])
def client_of(request):
    """Makes a client for an access; all are closed at the end."""
    made = []

    def make(access, waiting=None):
        made.append(request.param(access, waiting))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def cluster():
    with serving(*POWERED) as one:
        yield one


def access(one, token="write-token"):
    return Access(one.url, token)


def test_calls_are_answered_in_their_shapes(cluster, client_of):
    client = client_of(access(cluster))
    health, found, view = client.ask(
        calls.health(), calls.entities("n*"), calls.desire(str(N1), {"power": "off"}, take=True)
    )
    assert (health.status, [one.entity for one in found.entities]) == ("ok", ["node:n1"])
    assert (view.desired["power"].value, view.desired["power"].owner) == ("off", "user:bob")


def test_a_tag_guards_against_what_others_wrote_meanwhile(cluster, client_of):
    client = client_of(access(cluster))
    tag = client.tagged(calls.entity(str(N1))).tag
    [_] = client.ask(calls.desire(str(N1), {"power": "off"}, take=True, if_match=tag))
    with pytest.raises(RefusedError) as refused:
        client.ask(calls.desire(str(N1), {"power": "on"}, if_match=tag))
    assert refused.value.status == 412


def test_what_is_refused_says_what_and_what_to_do(cluster, client_of):
    client = client_of(access(cluster))
    with pytest.raises(RefusedError) as refused:
        client.ask(calls.entity("node:n9"))
    error = refused.value
    do = "see which there are: haptera get node, or GET /v1/entities?kind=node"
    assert (error.status, error.what, error.do) == (404, "there is no node:n9", do)
    # And the client can be asked again.
    assert client.ask(calls.entity(str(N1)))[0].entity == "node:n1"


def test_all_that_is_wrong_is_told(cluster, client_of):
    with pytest.raises(RefusedError) as refused:
        client_of(access(cluster, "wrong")).ask(calls.entities())
    advice = (
        "create a new token (haptera token make NAME), because tokens expire and can be revoked;"
        " or use the client file that this parent wrote last, .haptera/client.json"
    )
    assert [(one.what, one.do) for one in refused.value.errors] == [("no valid token", advice)]


def test_nobody_there_is_told_with_the_address(client_of):
    with serving() as one:
        gone = access(one)
    with pytest.raises(UnreachableError, match="Connection refused") as error:
        client_of(gone).ask(calls.health())
    assert error.value.where == gone.url


def test_an_answer_of_another_shape_is_told(cluster, client_of):
    with pytest.raises(HapteraError, match="use the same version here as there"):
        client_of(access(cluster)).ask(ApiCall("GET", "/v1/health", int))


@pytest.mark.parametrize("folder", ["near", "deep" * 40])
def test_a_unix_socket_is_asked_alike_however_long_its_path(tmp_path, client_of, folder):
    (tmp_path / folder).mkdir()
    with serving(*POWERED, path=tmp_path / folder / "api.sock") as one:
        client = client_of(access(one))
        assert client.ask(calls.entity(str(N1)))[0].entity == "node:n1"
        news = client.news(calls.events())
        assert [view.entity for view in next(news).event.entities] == ["node:n1"]
        news.close()


def test_a_socket_whose_own_name_is_too_long_is_told(client_of):
    with pytest.raises(UnreachableError, match="cannot reach the parent: File name too long"):
        client_of(Access(f"unix:/tmp/{'s' * PATH_BYTES_MAX}")).ask(calls.health())


def test_a_stream_goes_on_after_a_break_with_what_was_missed(cluster, client_of):
    news = client_of(access(cluster)).news(calls.events())
    first = next(news)
    cluster.do(cluster.backend.say, N1, condition=Condition.STUCK)
    second = next(news)
    cluster.do(cluster.streams.close)
    assert isinstance(next(news), Broken)
    cluster.do(cluster.backend.write, Declare(N2, {}, "site"))
    third = next(news)
    news.close()
    told = [(one.fresh, [view.entity for view in one.event.entities]) for one in (first, second)]
    assert told == [(True, ["node:n1"]), (False, ["node:n1"])]
    assert (third.fresh, [view.entity for view in third.event.entities]) == (False, ["node:n2"])


def test_a_stream_outlives_its_server_and_begins_anew_with_the_next(client_of):
    with serving(Declare(N1, {}, "site"), host=OWN) as one:
        news = client_of(access(one)).news(calls.events())
        first = next(news)
    assert isinstance(next(news), Broken)
    with serving(Declare(N2, {}, "site"), host=OWN, port=one.port):
        second = next(item for item in news if not isinstance(item, Broken))
        news.close()
    told = [(one.fresh, [view.entity for view in one.event.entities]) for one in (first, second)]
    assert told == [(True, ["node:n1"]), (True, ["node:n2"])]


def test_a_stream_that_is_refused_ends_with_the_servers_words(cluster, client_of):
    with pytest.raises(RefusedError, match="there is no event type 'x'"):
        next(client_of(access(cluster)).news(ApiCall("GET", "/v1/events", Event, {"types": "x"})))
