"""Answers read piece by piece, beside the standard library's reading of the whole."""

import contextlib
import http.client
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.client.http1 import HEAD_BYTES_MAX, HttpExchange

BODIES = st.binary(max_size=300)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["X-One", "ETag", "Date"]),
        st.text("abc 123:;=", max_size=20).map(str.strip),
    ),
    max_size=3,
)


class Whole:
    """What http.client takes for a socket."""

    def __init__(self, data):
        self._data = data

    def makefile(self, *_):
        return io.BytesIO(self._data)


@st.composite
def answers(draw):
    """How one asked, and the answer's bytes, framed in one of the three ways, or without a body."""
    method = draw(st.sampled_from(["GET", "HEAD"]))
    status = draw(st.sampled_from([200, 201, 204, 304, 404, 500]))
    empty = status in (204, 304)
    body = b"" if empty else draw(BODIES)
    lines = [f"HTTP/1.{draw(st.sampled_from('01'))} {status} {draw(st.sampled_from(['', 'OK']))}"]
    lines += [f"{name}: {text}" for name, text in draw(HEADERS)]
    framing = draw(st.sampled_from(["length", "chunked", "close"]))
    if framing == "length" or empty:
        lines.append(f"Content-Length: {len(body)}")
    elif framing == "chunked":
        lines.append("Transfer-Encoding: chunked")
        body = chunked(body, draw(st.integers(1, 50)))
    if draw(st.booleans()):
        lines.append("Connection: close")
    meanwhile = b"HTTP/1.1 100 Continue\r\n\r\n" if draw(st.booleans()) else b""
    answer = meanwhile + "\r\n".join([*lines, "", ""]).encode()
    return method, answer if method == "HEAD" else answer + body


def chunked(body, size):
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    told = b"".join(b"%x;x=y\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return told + b"0\r\nX-Trailer: 1\r\n\r\n"


def asked(method="GET", **headers):
    return HttpExchange(method, "/", {"Host": "head", **headers}, None)


def read(exchange, data, cuts):
    """The body, come in pieces, and the connection's end where the answer is not ended by then."""
    body = b""
    ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    for begin, end in zip([0, *ends], ends, strict=False):
        if begin < end and not exchange.ended:
            body += exchange.feed(data[begin:end])
    if not exchange.ended:
        body += exchange.feed(b"")
    return body


@given(answers(), st.lists(st.integers(0, 500), max_size=8))
def test_however_an_answer_comes_it_is_read_as_the_standard_library_does(asking, cuts):
    method, data = asking
    plain = http.client.HTTPResponse(Whole(data), method=method)
    plain.begin()
    expected = plain.read()

    exchange = asked(method)
    body = read(exchange, data, cuts)

    assert (exchange.status, body, exchange.ended) == (plain.status, expected, True)
    assert exchange.headers == {name.lower(): text for name, text in plain.getheaders()}
    assert exchange.keeps == (not plain.will_close)


@given(answers(), st.data())
def test_whatever_comes_is_read_or_refused(asking, chance):
    """Some bytes of an answer are others."""
    method, data = asking
    broken = bytearray(data)
    for _ in range(chance.draw(st.integers(1, 4))):
        broken[chance.draw(st.integers(0, len(broken) - 1))] = chance.draw(st.integers(0, 255))
    with contextlib.suppress(ValueError, EOFError):
        read(asked(method), bytes(broken), [chance.draw(st.integers(0, len(broken)))])


WELL = b"HTTP/1.1 200 OK\r\n"
CHUNKED = WELL + b"Transfer-Encoding: chunked\r\n\r\n"
TOO_LONG = f"a head or a line of more than {HEAD_BYTES_MAX} bytes"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"SSH-2.0-OpenSSH",
        WELL + b"Content-",
        WELL + b"Content-Length: 5\r\n\r\nhe",
        CHUNKED + b"5\r\nhello",
        CHUNKED + b"5\r\nhello\r\n0\r\n",
    ],
)
def test_an_answer_that_ends_too_early_is_none(data):
    with pytest.raises(EOFError, match="ended too early"):
        read(asked(), data, [])


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"SSH-2.0-hunter2\r\n\r\n", "illegal status line"),
        (b"HTTP/1.1 2000 hunter2\r\n\r\n", "illegal status line"),
        (WELL + b"hunter2\r\n\r\n", "illegal header line"),
        (WELL + b"Set-Cookie: hunter2\0\r\n\r\n", "illegal header line"),
        (WELL + b"Content-Length: -5\r\n\r\n", "bad Content-Length"),
        (WELL + b"Content-Length: 1_0\r\n\r\n", "bad Content-Length"),
        (WELL + b"Content-Length: 1, 2\r\n\r\n", "conflicting Content-Length headers"),
        (
            WELL + b"Transfer-Encoding: hunter2\r\n\r\n",
            "Only Transfer-Encoding: chunked is supported",
        ),
        (CHUNKED + b"hunter2\r\n", "illegal chunk header"),
        (CHUNKED + b"5\r\nhellohunter2\r\n", "malformed chunk footer"),
        (b"HTTP/1.1 200 " + b"O" * (HEAD_BYTES_MAX + 1), TOO_LONG),
        (WELL + b"X: y\r\n" * HEAD_BYTES_MAX, TOO_LONG),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * (HEAD_BYTES_MAX // 25 + 1), TOO_LONG),
        (CHUNKED + b"0" * (HEAD_BYTES_MAX + 1), TOO_LONG),
    ],
)
def test_what_is_no_http_is_refused_and_nothing_of_it_told(data, what):
    with pytest.raises(ValueError, match="not valid HTTP") as refused:
        read(asked(), data, [])
    assert str(refused.value) == f"the answer is not valid HTTP: {what}"


def test_a_head_of_the_full_length_is_read():
    head = WELL + b"X: " + b"y" * (HEAD_BYTES_MAX - len(WELL) - 7) + b"\r\n\r\n"
    exchange = asked()
    body = read(exchange, head + b"z" * HEAD_BYTES_MAX, [len(head) - 1])
    assert (len(head), exchange.status, len(body)) == (HEAD_BYTES_MAX, 200, HEAD_BYTES_MAX)


def test_what_comes_behind_an_answer_is_of_no_other():
    exchange = asked()
    assert exchange.feed(WELL + b"Content-Length: 2\r\n\r\nhi there") == b"hi"
    assert (exchange.ended, exchange.keeps) == (True, False)


@pytest.mark.parametrize(
    "text", ["hunter2\r\nEvil: 1", "hunter2\nEvil: 1", "hunter2\0", "hunter2€"]
)
def test_what_is_no_header_is_not_sent_and_not_told(text):
    with pytest.raises(ValueError, match="line break, or another character") as refused:
        asked(Authorization=text)
    assert "hunter2" not in str(refused.value)


def test_a_body_is_sent_with_its_length():
    exchange = HttpExchange("PATCH", "/x?y=1", {"Host": "head", "If-Match": "é"}, b"{}")
    head = b"PATCH /x?y=1 HTTP/1.1\r\nHost: head\r\nIf-Match: \xe9\r\nContent-Length: 2\r\n\r\n"
    assert exchange.request == head + b"{}"
