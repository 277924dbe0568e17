"""Answers read piece by piece, beside the standard library's reading of the whole."""

import contextlib
import http.client
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.client.http1 import HEAD_BYTES_MAX, Answer, request

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
    """An answer's bytes, framed in one of the three ways, or without a body."""
    status = draw(st.sampled_from([200, 201, 204, 304, 404, 500]))
    body = b"" if status in (204, 304) else draw(BODIES)
    lines = [f"HTTP/1.{draw(st.sampled_from('01'))} {status} {draw(st.sampled_from(['', 'OK']))}"]
    lines += [f"{name}: {text}" for name, text in draw(HEADERS)]
    framing = draw(st.sampled_from(["length", "chunked", "close"]))
    if framing == "length" or status in (204, 304):
        lines.append(f"Content-Length: {len(body)}")
    elif framing == "chunked":
        lines.append("Transfer-Encoding: chunked")
        body = chunked(body, draw(st.integers(1, 50)))
    if draw(st.booleans()):
        lines.append("Connection: close")
    meanwhile = b"HTTP/1.1 100 Continue\r\n\r\n" if draw(st.booleans()) else b""
    return meanwhile + "\r\n".join([*lines, "", ""]).encode() + body


def chunked(body, size):
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    told = b"".join(b"%x;x=y\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return told + b"0\r\nX-Trailer: 1\r\n\r\n"


def read(data, cuts):
    """The answer in pieces, and the connection's end where it is not ended by then."""
    answer, body = Answer(), b""
    ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    for begin, end in zip([0, *ends], ends, strict=False):
        if begin < end and not answer.ended:
            body += answer.feed(data[begin:end])
    if not answer.ended:
        body += answer.feed(b"")
    return answer, body


@given(answers(), st.lists(st.integers(0, 500), max_size=8))
def test_however_an_answer_comes_it_is_read_as_the_standard_library_does(data, cuts):
    plain = http.client.HTTPResponse(Whole(data), method="GET")
    plain.begin()
    expected = plain.read()

    answer, body = read(data, cuts)

    assert (answer.status, body, answer.ended) == (plain.status, expected, True)
    assert answer.headers == {name.lower(): text for name, text in plain.getheaders()}
    assert not answer.keeps or not plain.will_close


@given(answers(), st.data())
def test_whatever_comes_is_read_or_refused(data, chance):
    """Some bytes of an answer are others."""
    broken = bytearray(data)
    for _ in range(chance.draw(st.integers(1, 4))):
        broken[chance.draw(st.integers(0, len(broken) - 1))] = chance.draw(st.integers(0, 255))
    with contextlib.suppress(ValueError, EOFError):
        read(bytes(broken), [chance.draw(st.integers(0, len(broken)))])


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe", EOFError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello", EOFError),
        (b"HTTP/1.1 200 OK\r\nContent-", EOFError),
        (b"", EOFError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", ValueError),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n", ValueError),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n", ValueError),
        (b"HTTP/1.1 2000 OK\r\n\r\n", ValueError),
        (b"SSH-2.0-OpenSSH\r\n\r\n", ValueError),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", ValueError),
        (b"HTTP/1.1 200 " + b"O" * (HEAD_BYTES_MAX + 1), ValueError),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * HEAD_BYTES_MAX, ValueError),
    ],
)
def test_what_is_no_whole_answer_is_refused(data, error):
    with pytest.raises(error):
        read(data, [])


@pytest.mark.parametrize("text", ["x\r\nEvil: 1", "x\nEvil: 1"])
def test_a_line_break_in_a_header_is_not_sent(text):
    with pytest.raises(ValueError, match="line break"):
        request("GET", "/", {"Authorization": text}, None)
