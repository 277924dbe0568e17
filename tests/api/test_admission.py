"""Who asks is looked at before anything that they ask, on every route there is."""

import contextlib
import http.client
import socket

import pytest

from haptera.model.token_scope import Scope
from haptera.rest.endpoint import KEY_HEADER
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend
from tests.api.serving import WITHIN_S, serving

# What is wrong with a request, apart from who sends it.
WRONG = {
    "a query it may not have": ("?nonsense=1", {}, b""),
    "a value that means nothing": ("?dry_run=maybe&take=perhaps", {}, b""),
    "a control in its query": ("?why=%1b%5b1m", {}, b""),
    "no JSON": ("", {}, b"{"),
    "a bad key": ("", {KEY_HEADER.lower(): "two words"}, b"{}"),
    "a bad condition": ("", {"if-match": "*, *", "last-event-id": "?"}, b"{}"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_nobody_is_told_what_is_wrong_with_a_request_that_they_may_not_send(wrong):
    query, headers, body = WRONG[wrong]
    app = app_of(FakeBackend())
    told, expected = {}, {}
    for route in app.routes:
        scope, may_be_dry = route.declared.scope, route.declared.dry_scope is not None
        path = route.path.replace("{", "").replace("}", "")
        for method in route.methods - {"HEAD"}:
            for token in (None, "wrong-token", "read-token"):
                may_read = scope is Scope.READ or may_be_dry
                if scope is None or (token == "read-token" and may_read):
                    continue
                answer = ask(app, method, path + query, token=token, headers=headers, body=body)
                told[method, path, token] = answer.status
                expected[method, path, token] = 403 if token == "read-token" else 401
    assert len(told) > 100
    assert told == expected


@pytest.mark.net
def test_a_request_of_two_lengths_is_refused_and_the_connection_closed():
    """Who passes it on may believe the other one, and what is left over is a second request."""
    with serving() as server, socket.create_connection(("127.0.0.1", server.port)) as end:
        end.settimeout(WITHIN_S)
        end.sendall(
            b"POST /v1/freezes HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        )
        answer = http.client.HTTPResponse(end)
        answer.begin()
        assert (answer.status, answer.getheader("connection")) == (400, "close")
        assert b"Content-Length and Transfer-Encoding" in answer.read()
        assert end.recv(1) == b""


@pytest.mark.net
@pytest.mark.parametrize(
    "rest", [b"-1\r\n{}", b"f" * 5_000 + b"\r\n", b"0\r\n" + b"A: b\r\n" * 50_000]
)
@pytest.mark.parametrize("path", [b"/v1/freezes", b"/v1/health"])
def test_a_body_that_is_none_is_refused_in_a_line_of_the_log(rest, path, caplog):
    """Whoever may connect must not fill the log with tracebacks."""
    with serving() as server, socket.create_connection(("127.0.0.1", server.port)) as end:
        end.settimeout(WITHIN_S)
        end.sendall(
            b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n" % path
        )
        with contextlib.suppress(ConnectionError):
            end.sendall(rest)
            while end.recv(65_536):
                pass
    assert [record for record in caplog.records if record.exc_info] == []
