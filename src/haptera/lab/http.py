"""As much of HTTP/1.1 as a small device speaks: one request a connection, everything bounded."""

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import msgspec

HEAD_BYTES_MAX: Final = 8 << 10
BODY_BYTES_MAX: Final = 64 << 10
# How long a client may take to send its request.
REQUEST_S_MAX: Final = 5.0

METHODS: Final = frozenset({"GET", "POST"})


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Response:
    """A status and what is said with it, as JSON."""

    status: HTTPStatus
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Head:
    """A request without its body."""

    method: str
    path: str
    body_bytes: int


def parse_head(data: bytes) -> Head | Response:
    r"""Read request line and headers; for whatever is not understood, the answer to give.

    >>> parse_head(b"GET /power HTTP/1.1\r\nHost: x\r\n\r\n")
    Head(method='GET', path='/power', body_bytes=0)
    """
    request, *fields = data.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    words = request.split(" ")
    if len(words) != 3 or words[2] not in {"HTTP/1.0", "HTTP/1.1"} or not words[1].startswith("/"):
        return refuse(HTTPStatus.BAD_REQUEST, "the first line is no HTTP/1.1 request")
    if words[0] not in METHODS:
        return refuse(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and POST are understood")
    headers: dict[str, str] = {}
    for line in fields:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip() or name.lower() in headers:
            return refuse(HTTPStatus.BAD_REQUEST, "a header is broken or comes twice")
        headers[name.lower()] = value.strip()
    return _measure(words[0], words[1], headers)


async def read_request(reader: asyncio.StreamReader) -> Request | Response | None:
    """Read one request; for a bad one, the answer to give; None where nobody waits for any."""
    try:
        async with asyncio.timeout(REQUEST_S_MAX):
            head = parse_head(await reader.readuntil(b"\r\n\r\n"))
            if isinstance(head, Response):
                return head
            return Request(head.method, head.path, await reader.readexactly(head.body_bytes))
    except asyncio.LimitOverrunError:
        return refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too long")
    except TimeoutError:
        return refuse(HTTPStatus.REQUEST_TIMEOUT, "the request does not end")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


def encode(response: Response) -> bytes:
    """A whole response."""
    body = msgspec.json.encode(response.body) + b"\n"
    return start_line(response.status) + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def start_line(status: HTTPStatus) -> bytes:
    """The start of a response, up to where the length of its body goes or its headers end."""
    return (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        "Connection: close\r\nContent-Type: application/json\r\n"
    ).encode("ascii")


def refuse(status: HTTPStatus, text: str) -> Response:
    """An answer that says what was wrong."""
    return Response(status, {"error": text})


def _measure(method: str, path: str, headers: dict[str, str]) -> Head | Response:
    if "transfer-encoding" in headers:
        return refuse(HTTPStatus.NOT_IMPLEMENTED, "send a Content-Length, not chunks")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        return refuse(HTTPStatus.BAD_REQUEST, "Content-Length is no number")
    if len(length) > 9 or int(length) > BODY_BYTES_MAX:
        return refuse(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {BODY_BYTES_MAX} bytes are taken"
        )
    return Head(method, path, int(length))
