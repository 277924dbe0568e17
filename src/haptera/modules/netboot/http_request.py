r"""A request of HTTP/1.1, read as RFC 9112 has it: what a server must accept, and must refuse.

An agent carries no web stack, and the modules are an agent's too: so this is not done by h11.

>>> read_head(b"GET /once/script HTTP/1.1\r\nHost: boot\r\n\r\n")
FileRequest(method='GET', path='/once/script', part=None, closes=False, body=0, continues=False)
>>> read_head(b"GET /once/script HTTP/1.1\r\n\r\n")
<HTTPStatus.BAD_REQUEST: 400>
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

METHODS: Final = ("GET", "HEAD")
# What is called so is known, and not allowed; all else is not known at all.
_OTHER_METHODS: Final = frozenset({"POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"})
# Of a request's body, which nothing here has a use for, and which has to be read nevertheless.
BODY_BYTES_MAX: Final = 65_536

_TOKEN: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_LINE: Final = re.compile(rf"({_TOKEN}) ([\x21-\x7e]+) HTTP/([0-9])\.([0-9])")
# No blank before the colon, no line that goes on in the next one, no control in a value (5.1, 5.2).
_FIELD: Final = re.compile(rf"({_TOKEN}):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_HOST: Final = re.compile(r"(?:[\w.~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.v]+\])(?::[0-9]*)?", re.ASCII)
# The authority of an absolute form says who is asked, which the connection has said already.
_TARGET: Final = re.compile(r"(?:http://[^/?#]+)?(/[^#]*)|http://[^/?#]+", re.IGNORECASE)
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
_RANGE: Final = re.compile(
    r"bytes=[ \t]*(?:([0-9]{1,15})-([0-9]{0,15})|-([0-9]{1,15}))[ \t]*", re.I
)
_CHUNKED: Final = "chunked"

_Fields = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file, up to its end where there is no `last`; of its end alone, without `first`.

    >>> FilePart(3, 5).within(10), FilePart(3, None).within(10), FilePart(None, 4).within(10)
    ((3, 6), (3, 10), (6, 10))
    """

    first: int | None
    last: int | None

    def within(self, size: int) -> tuple[int, int]:
        """From where to where, in a file of this size; nothing where it has no such part."""
        if self.first is None:
            return size - min(self.last or 0, size), size
        end = size if self.last is None else min(self.last + 1, size)
        return min(self.first, end), end


@dataclass(frozen=True, slots=True)
class FileRequest:
    """A request, up to its body: of so many bytes, or in chunks where there is no length (None).

    `continues` says that the client waits for a word before it sends the body.
    """

    method: str
    path: str
    part: FilePart | None
    closes: bool
    body: int | None
    continues: bool


def read_head(head: bytes) -> FileRequest | HTTPStatus:
    """The request; or the status of its refusal, after which nothing can be read any more."""
    line, *rest = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    match = _LINE.fullmatch(line)
    fields = _fields(rest)
    if match is None or fields is None:
        return HTTPStatus.BAD_REQUEST
    method, target, major, minor = match.groups()
    if major != "1":
        return HTTPStatus.HTTP_VERSION_NOT_SUPPORTED
    is_old = minor == "0"
    hosts = fields.get("host", ())
    if len(hosts) > 1 or (not hosts and not is_old) or not all(map(_HOST.fullmatch, hosts)):
        return HTTPStatus.BAD_REQUEST
    body = _body(fields, is_old=is_old)
    if isinstance(body, HTTPStatus):
        return body
    if method not in METHODS:
        is_known = method in _OTHER_METHODS
        return HTTPStatus.METHOD_NOT_ALLOWED if is_known else HTTPStatus.NOT_IMPLEMENTED
    named = _TARGET.fullmatch(target)
    if named is None:
        return HTTPStatus.BAD_REQUEST
    return FileRequest(
        method,
        unquote(named[1] or "/"),
        _part(fields) if method == "GET" else None,
        closes=is_old or "close" in _listed(fields, "connection"),
        body=body,
        continues=not is_old and "100-continue" in _listed(fields, "expect"),
    )


def chunk_bytes(line: bytes) -> int | None:
    r"""How long the next chunk is, by its first line; None where this is none.

    >>> chunk_bytes(b"1a;name=text\r\n"), chunk_bytes(b"0\r\n"), chunk_bytes(b"0x1\r\n")
    (26, 0, None)
    """
    match = re.fullmatch(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n", line)
    return None if match is None else int(match[1], 16)


def _fields(lines: Sequence[str]) -> _Fields | None:
    fields: dict[str, list[str]] = {}
    for line in lines:
        match = _FIELD.fullmatch(line)
        if match is None:
            return None
        fields.setdefault(match[1].lower(), []).append(match[2].rstrip(" \t"))
    return fields


def _listed(fields: _Fields, name: str) -> list[str]:
    """The members of a list, which may be in several lines."""
    return [one.strip(" \t").lower() for text in fields.get(name, ()) for one in text.split(",")]


def _body(fields: _Fields, *, is_old: bool) -> int | HTTPStatus | None:
    """The length of the body, if that is certain (RFC 9112, 6.3): else it is refused."""
    codings, lengths = _listed(fields, "transfer-encoding"), _listed(fields, "content-length")
    if codings:
        if is_old or lengths or codings[-1] != _CHUNKED or _CHUNKED in codings[:-1]:
            return HTTPStatus.BAD_REQUEST
        return None if len(codings) == 1 else HTTPStatus.NOT_IMPLEMENTED
    if not lengths:
        return 0
    if len(set(lengths)) > 1 or _LENGTH.fullmatch(lengths[0]) is None:
        return HTTPStatus.BAD_REQUEST
    length = int(lengths[0])
    return length if length <= BODY_BYTES_MAX else HTTPStatus.REQUEST_ENTITY_TOO_LARGE


def _part(fields: _Fields) -> FilePart | None:
    """What is asked for of a file; all of it where that is not one part.

    No answer has a validator, so none is the one that an `If-Range` names (RFC 9110, 13.1.5).
    """
    ranges = fields.get("range", ())
    match = _RANGE.fullmatch(ranges[0]) if len(ranges) == 1 else None
    if match is None or "if-range" in fields:
        return None
    first, last, suffix = (int(one) if one else None for one in match.groups())
    if first is None:
        return FilePart(None, suffix)
    return None if last is not None and last < first else FilePart(first, last)
