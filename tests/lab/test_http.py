"""A BMC's reading of requests: whatever comes, there is an answer or a request."""

import asyncio
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.lab.http import BODY_BYTES_MAX, Head, Request, Response, parse_head, read_request

LINES = st.lists(
    st.sampled_from(
        [
            b"GET /power HTTP/1.1",
            b"POST /power HTTP/1.0",
            b"Content-Length: 3",
            b"content-length: 3",
            b"Content-Length: -3",
            b"Content-Length: \xb2",
            b"Transfer-Encoding: chunked",
            b"Host: x",
            b"",
            b" folded",
        ]
    )
    | st.binary(max_size=20),
    max_size=6,
)


@given(LINES)
def test_whatever_is_sent_is_a_head_or_has_an_answer(lines: list[bytes]) -> None:
    match parse_head(b"\r\n".join(lines) + b"\r\n\r\n"):
        case Head(method, path, body_bytes):
            assert method in {"GET", "POST"}
            assert path.startswith("/")
            assert 0 <= body_bytes <= BODY_BYTES_MAX
        case Response(status, body):
            assert status >= HTTPStatus.BAD_REQUEST
            assert list(body) == ["error"]


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (
            b"POST /power HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
            Request("POST", "/power", b"{}"),
        ),
        (b"GET /power HTTP/1.1\r\n\r\n", Request("GET", "/power", b"")),
        (b"POST /power HTTP/1.1\r\nContent-Length: 2\r\n\r\n{", None),
        (b"", None),
    ],
)
def test_a_request_is_read_whole_or_not_at_all(data: bytes, read: Request | None) -> None:
    async def story() -> Request | Response | None:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await read_request(reader)

    assert asyncio.run(story()) == read
