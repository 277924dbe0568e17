"""What a platform may answer, and what must not come of it: its bytes are a stranger's."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from haptera.modules.declared import exchange
from haptera.modules.declared.api import Api, DeclaredSettings
from haptera.modules.declared.exchange import ApiRequest, PlatformAnswer, PlatformError
from haptera.modules.declared.terms import HttpTerms, ListTerms, TaskTerms
from haptera.modules.effects import NotYetError
from haptera.sdk import HapteraError, Refused, Secret
from tests.modules.declared.platform_terms import FakePlatform, answer

TOKEN = Secret("sesame-open-9")
LIST = ListTerms("/boxes", "items", "id", "next")
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@contextmanager
def served(speak: Callable[[socket.socket, bytes], object]) -> Iterator[str]:
    """The address of a server that says what `speak` says to each request, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def run() -> None:
            while True:
                try:
                    peer, _ = listening.accept()
                except OSError:
                    return
                with peer:
                    try:
                        speak(peer, peer.recv(65536))
                    except OSError:
                        continue

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


def asked(url: str, what: Callable[[Api], Coroutine[Any, Any, Any]], **terms: Any) -> Any:
    async def run() -> Any:
        api = Api(HttpTerms(url, per_second=1000, **terms), DeclaredSettings(TOKEN))
        try:
            return await asyncio.wait_for(what(api), 20)
        finally:
            api.close()

    return asyncio.run(run())


def sending(data: bytes) -> Callable[[socket.socket, bytes], object]:
    return lambda peer, _: peer.sendall(data)


def body(content: bytes) -> bytes:
    return OK + b"Content-Length: %d\r\n\r\n" % len(content) + content


@pytest.mark.net
@pytest.mark.parametrize(
    ("said", "what"),
    [
        (body(b"[" * 100_000), "its answer is no JSON (RecursionError)"),
        (body(b'{"a": '), "its answer is no JSON"),
        (body(b"\xff\xfe{}"), "its answer is no JSON"),
        (OK + b"Content-Length: 99\r\n\r\n{}", "cut short"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "does not answer"),
        (OK + b"Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", "coding that was not asked"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n", "does not answer"),
        (b"", "does not answer"),
        (b"\x16\x03\x01", "does not answer"),
        (b"HTTP/1.1 302 \x1b[2J\r\nLocation: http://127.0.0.2/\r\n\r\n", "nobody goes there"),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", "it answers 500 Internal Server Error"),
    ],
)
def test_what_is_no_answer_is_a_failure_with_words(said: bytes, what: str) -> None:
    with served(sending(said)) as url, pytest.raises(PlatformError) as error:
        asked(url, lambda api: api.read("/boxes"))
    assert what in str(error.value)
    assert str(error.value).isprintable()


@pytest.mark.net
def test_a_body_without_an_end_is_left_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = 0

    def speak(peer: socket.socket, _: bytes) -> None:
        nonlocal sent
        peer.sendall(OK + b"\r\n")
        while sent < 1 << 30:
            peer.sendall(b" " * 65536)
            sent += 65536

    with served(speak) as url, pytest.raises(PlatformError, match="more than 1048576 bytes"):
        asked(url, lambda api: api.read("/boxes"))
    assert sent < 64 << 20


@pytest.mark.net
@pytest.mark.parametrize("begins", [b"", b"HTTP/1.1 200 OK\r\nX: ", OK + b"\r\n"])
def test_what_drips_ends_with_the_call(begins: bytes) -> None:
    ended = threading.Event()

    def speak(peer: socket.socket, _: bytes) -> None:
        peer.sendall(begins)
        try:
            while not ended.wait(0.05):
                peer.sendall(b" ")
        except OSError:
            ended.set()

    async def drips(api: Api) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(api.read("/boxes"), 0.3)

    with served(speak) as url:
        asked(url, drips)
        # Its thread has hung up, so that it holds no place.
        assert ended.wait(10)


@pytest.mark.net
def test_the_token_goes_to_its_api_only_and_never_into_words() -> None:
    heads: list[bytes] = []

    def echo(peer: socket.socket, request: bytes) -> None:
        heads.append(request)
        content = json.dumps({"error": {"message": request.decode()}}).encode()
        peer.sendall(b"HTTP/1.1 403 No\r\nContent-Length: %d\r\n\r\n" % len(content) + content)

    with served(echo) as url, pytest.raises(Refused) as error:
        asked(url, lambda api: api.change("POST", "/boxes/x", {}), error="error.message")
    assert b"Authorization: Bearer sesame-open-9\r\n" in heads[0]
    assert "sesame" not in str(error.value)

    with pytest.raises(HapteraError, match="where others can read it"):
        asked("http://192.0.2.1:80", lambda api: api.read("/boxes"))


@pytest.mark.net
@pytest.mark.parametrize("form", ["bearer", "basic"])
@pytest.mark.parametrize(
    "echo",
    [
        lambda said: said + b"\r\n\r\n",
        lambda said: OK + b"Content-Encoding: %s\r\nContent-Length: 0\r\n\r\n" % said,
        lambda said: body(b'{"items": [], "next": "//%s/"}' % said),
    ],
    ids=["no status line", "an unasked coding", "a page elsewhere"],
)
def test_no_answer_that_cannot_be_used_tells_the_token(
    echo: Callable[[bytes], bytes], form: str
) -> None:
    """Neither as it is nor as it was sent."""
    sent: list[bytes] = []

    def speak(peer: socket.socket, request: bytes) -> None:
        sent.append(request.partition(b"Authorization: ")[2].split()[1])
        peer.sendall(echo(sent[0]))

    with served(speak) as url, pytest.raises(PlatformError) as error:
        asked(url, lambda api: api.listed("all", LIST, 0.0), auth=form)
    assert sent[0].decode() not in str(error.value)
    assert TOKEN not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1.example.com/",
        "http://127.evil/",
        "http://localhost.example.com/",
        "http://10.0.0.1/",
    ],
)
def test_a_name_that_only_looks_like_this_machine_gets_no_token(url: str) -> None:
    def ask(api: Api) -> Coroutine[Any, Any, Any]:
        return api.read("/boxes")

    with pytest.raises(HapteraError, match="where others can read it"):
        asked(url, ask)
    for own in ("http://127.9.9.9:1/", "http://[::1]:1/", "http://localhost:1/", "https://a.b/"):
        assert exchange.ApiOrigin(own).is_private


@pytest.mark.parametrize(
    "place",
    ["https://127.0.0.1:1/api/t/1", "http://127.0.0.1:2/t", "//evil.example/t", "http://[", "a b"],
)
def test_a_task_or_page_elsewhere_is_not_followed(place: str) -> None:
    page = answer({"items": [], "next": place})
    with pytest.raises(PlatformError, match="not below its own address"):
        faked(FakePlatform(lambda _: page), lambda api: api.listed("all", LIST, 0.0))


def test_pages_are_read_to_their_end_and_a_list_without_one_is_refused() -> None:
    def pages(request: ApiRequest) -> PlatformAnswer:
        at = int(request.path.partition("=")[2] or 0)
        items = [{"id": f"b{at + n}", "state": "x"} for n in range(100)]
        more = f"/api/boxes?from={at + 100}" if at < 9_900 else None
        return answer({"items": items, "next": more})

    found = faked(FakePlatform(pages), lambda api: api.listed("all", LIST, 0.0))
    assert len(found.items) == 10_000

    endless = answer({"items": [], "next": "/api/boxes"})
    with pytest.raises(PlatformError, match="more than 1000 pages"):
        faked(FakePlatform(lambda _: endless), lambda api: api.listed("all", LIST, 0.0))


def test_a_task_that_cannot_be_read_for_a_while_goes_on() -> None:
    said = [answer({}, 500), answer({"phase": "running"}), answer({"phase": "ok"})]
    seen: list[str] = []
    task = TaskTerms("phase", ["ok"], ["bad"], every_s=0.01)
    accepted = answer({}, 202, location="/api/tasks/1")

    def follow(api: Api) -> Coroutine[Any, Any, None]:
        return api.finished(accepted, task, "/boxes", seen.append)

    faked(FakePlatform(lambda _: said.pop(0)), follow)
    assert seen == ["it answers 500 Internal Server Error", "running"]


def test_a_task_that_is_not_to_be_asked_now_goes_on_and_is_no_refusal() -> None:
    """The change was accepted: whoever hears *not yet* would have it made a second time."""
    busy = answer({}, 429, **{"retry-after": "4"})
    said = [busy, answer({"phase": "ok"})]
    task = TaskTerms("phase", ["ok"], ["bad"], every_s=0.01)
    accepted = answer({}, 202, location="/api/tasks/1")
    seen: list[str] = []

    async def follow(api: Api) -> None:
        async with asyncio.timeout(30):
            await api.finished(accepted, task, "/boxes", seen.append)

    faked(FakePlatform(lambda _: said.pop(0)), follow)
    assert said == []
    assert seen[0] == "it answers 429 Too Many Requests"


@pytest.mark.parametrize("number", ["..", ".", "", None, {}, 3.5])
def test_a_task_without_a_usable_number_is_no_refusal(number: object) -> None:
    task = TaskTerms("phase", ["ok"], ["bad"], get="/tasks/{id}", id="task", every_s=0.01)
    said = [answer({"task": number}, 202), answer({"phase": "bad"})]
    with pytest.raises(PlatformError):
        faked(
            FakePlatform(lambda _: said.pop(0)),
            lambda api: api.finished(said.pop(0), task, "/boxes", lambda _: None),
        )


def test_a_long_pause_that_is_asked_for_is_kept() -> None:
    async def twice(api: Api) -> None:
        for _ in range(2):
            with pytest.raises(NotYetError):
                await api.read("/boxes")

    platform = FakePlatform(lambda _: answer({}, 503, **{"retry-after": "86400"}))
    faked(platform, twice)
    assert len(platform.asked) == 1


def test_busy_is_waited_for_as_long_as_it_says_and_then_told() -> None:
    busy = [answer({}, 429, **{"retry-after": "0"}), answer({"a": 1})]
    found = faked(FakePlatform(lambda _: busy.pop(0)), lambda api: api.read("/boxes"))
    assert found[0] == {"a": 1}

    for told_s in ("9", "999999999999", "soon" * 99):
        later = answer({}, 503, **{"retry-after": told_s})
        platform = FakePlatform(lambda _, one=later: one)
        with pytest.raises(NotYetError, match="it answers 503"):
            faked(platform, lambda api: api.change("POST", "/boxes/x", {}))


def test_answers_of_wrong_types_are_failures_not_crashes() -> None:
    for data in ([], {}, {"items": {}}, {"items": None}, "x", 7):
        wrong = answer(data)
        platform = FakePlatform(lambda _, one=wrong: one)
        with pytest.raises(PlatformError):
            faked(platform, lambda api: api.listed("all", LIST, 0.0))
    odd = answer({"items": [7, None, {"id": {}}, {"id": "a"}, {"id": "b"}, {"id": "b"}]})
    found = faked(FakePlatform(lambda _: odd), lambda api: api.listed("all", LIST, 0.0))
    assert found.items == {"a": {"id": "a"}, "b": None}


def test_a_connection_that_comes_too_late_asks_for_nothing() -> None:
    late = exchange.ApiExchange(exchange.ApiOrigin("http://127.0.0.1:1"))
    late.hang_up()
    with pytest.raises(PlatformError):
        late.ask(ApiRequest("POST", "/"))


def faked(platform: FakePlatform, what: Callable[[Api], Coroutine[Any, Any, Any]]) -> Any:
    async def run() -> Any:
        terms = HttpTerms("http://127.0.0.1:1/api", per_second=1000)
        return await what(Api(terms, DeclaredSettings(), platform))

    return asyncio.run(run())
