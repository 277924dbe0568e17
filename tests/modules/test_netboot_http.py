"""What RFC 9112 (and 9110) obliges a server to accept and to refuse, line by line."""

from http import HTTPStatus
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.modules.netboot.http_request import (
    BODY_BYTES_MAX,
    FilePart,
    FileRequest,
    chunk_bytes,
    read_head,
)

HOST: Final = "Host: boot"
BAD: Final = HTTPStatus.BAD_REQUEST


def head(line: str, *fields: str) -> bytes:
    return "\r\n".join([line, *fields, "", ""]).encode("latin-1")


def get(*fields: str, line: str = "GET /once/script HTTP/1.1") -> FileRequest | HTTPStatus:
    return read_head(head(line, HOST, *fields))


PLAIN: Final = FileRequest("GET", "/once/script", None, closes=False, body=0, continues=False)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        # 3.2.1 and 3.2.2: both forms of a target, the absolute one of any host.
        ("GET /once/script HTTP/1.1", "/once/script"),
        ("GET http://boot:4281/once/script HTTP/1.1", "/once/script"),
        ("GET HTTP://elsewhere/once/script HTTP/1.1", "/once/script"),
        ("GET http://boot HTTP/1.1", "/"),
        # RFC 9110, 4.2.3: the same resource.
        ("GET /once/%73cript HTTP/1.1", "/once/script"),
        ("GET /once/../secret HTTP/1.1", "/once/../secret"),
        ("GET /once/script?a=b HTTP/1.1", "/once/script?a=b"),
        # RFC 9110, 2.5: a higher minor version is understood as ours.
        ("GET /once/script HTTP/1.9", "/once/script"),
    ],
)
def test_a_target_in_either_form_is_accepted(line: str, path: str) -> None:
    request = get(line=line)
    assert isinstance(request, FileRequest)
    assert (request.path, request.closes) == (path, False)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET", BAD),
        ("", BAD),
        ("GET /once/script", BAD),  # of HTTP/0.9
        ("GET  /once/script HTTP/1.1", BAD),
        ("GET /once/script HTTP/1.1 ", BAD),
        ("GET\t/once/script HTTP/1.1", BAD),
        ("GET /once/script\nHTTP/1.1", BAD),
        ("GET /once\rscript HTTP/1.1", BAD),
        ("GET /once/s\xe9 HTTP/1.1", BAD),
        ("GET /once/script http/1.1", BAD),
        ("GET /once/script HTTP/11", BAD),
        ("GET /once/script#end HTTP/1.1", BAD),
        ("GET once/script HTTP/1.1", BAD),
        ("GET * HTTP/1.1", BAD),
        ("GET ftp://boot/once/script HTTP/1.1", BAD),
        ("G(T /once/script HTTP/1.1", BAD),
        ("GET /once/script HTTP/2.0", HTTPStatus.HTTP_VERSION_NOT_SUPPORTED),
        ("GET /once/script HTTP/0.9", HTTPStatus.HTTP_VERSION_NOT_SUPPORTED),
        # RFC 9110, 9.1: what is known and not allowed, and what is not known; names have a case.
        ("POST /once/script HTTP/1.1", HTTPStatus.METHOD_NOT_ALLOWED),
        ("OPTIONS * HTTP/1.1", HTTPStatus.METHOD_NOT_ALLOWED),
        ("CONNECT boot:80 HTTP/1.1", HTTPStatus.METHOD_NOT_ALLOWED),
        ("BREW /once/script HTTP/1.1", HTTPStatus.NOT_IMPLEMENTED),
        ("get /once/script HTTP/1.1", HTTPStatus.NOT_IMPLEMENTED),
    ],
)
def test_another_first_line_is_refused(line: str, status: HTTPStatus) -> None:
    assert get(line=line) == status


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        # 3.2: one Host, and a valid one; HTTP/1.0 may have none.
        ([], BAD),
        ([HOST, HOST], BAD),
        (["Host: a b"], BAD),
        (["Host: http://boot/"], BAD),
        (["Host: a, b"], BAD),
        (["Host: boot:x"], BAD),
        # 2.2 and 5.2: no line before the first field, nor one that goes on.
        ([" Other: value", HOST], BAD),
        ([HOST, "Other: value", " and more"], BAD),
        ([HOST, "Other: value", "\tand more"], BAD),
        # 5.1, and RFC 9110, 5.5: no blank before the colon, no control in a value.
        (["Host : boot"], BAD),
        ([HOST, ": value"], BAD),
        ([HOST, "Other"], BAD),
        ([HOST, "Other: a\nb"], BAD),
        ([HOST, "Other: a\rb"], BAD),
        ([HOST, "Other: a\0b"], BAD),
    ],
)
def test_other_fields_are_refused(fields: list[str], status: HTTPStatus) -> None:
    assert read_head(head("GET /once/script HTTP/1.1", *fields)) == status


@pytest.mark.parametrize(
    "host",
    ["Host:", "host:boot", "HOST: \t boot:4281 \t", "Host: [fd00::1]:4281", "Host: 10.9.0.1"],
)
def test_a_host_that_may_be_is_accepted(host: str) -> None:
    assert read_head(head("GET /once/script HTTP/1.1", host)) == PLAIN


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        # 6.1 to 6.3: how long the body is; where that is not sure, nothing behind it is read.
        (["Content-Length: 0"], 0),
        (["Content-Length: 5"], 5),
        (["Content-Length: 5", "Content-Length: 5"], 5),
        (["Content-Length: 5, 5"], 5),
        (["Transfer-Encoding: chunked"], None),
        (["Transfer-Encoding: CHUNKED"], None),
        (["Transfer-Encoding: chunked", "Content-Length: 5"], BAD),
        (["Transfer-Encoding: gzip, chunked"], HTTPStatus.NOT_IMPLEMENTED),
        (["Transfer-Encoding: gzip"], BAD),
        (["Transfer-Encoding: chunked, gzip"], BAD),
        (["Transfer-Encoding: chunked, chunked"], BAD),
        (["Transfer-Encoding: xchunked"], BAD),
        (["Transfer-Encoding:"], BAD),
        (["Content-Length:"], BAD),
        (["Content-Length: -5"], BAD),
        (["Content-Length: +5"], BAD),
        (["Content-Length: 0x5"], BAD),
        (["Content-Length: 5 5"], BAD),
        (["Content-Length: 5, 6"], BAD),
        (["Content-Length: 5", "Content-Length: 6"], BAD),
        ([f"Content-Length: {'9' * 400}"], BAD),
        ([f"Content-Length: {BODY_BYTES_MAX}"], BODY_BYTES_MAX),
        ([f"Content-Length: {BODY_BYTES_MAX + 1}"], HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ],
)
def test_a_body_is_as_long_as_6_3_has_it(fields: list[str], body: int | HTTPStatus | None) -> None:
    request = get(*fields)
    assert (request.body if isinstance(request, FileRequest) else request) == body


def test_chunks_of_an_old_client_are_refused() -> None:
    old = "GET /once/script HTTP/1.0"
    assert get("Transfer-Encoding: chunked", line=old) == BAD


@pytest.mark.parametrize(
    ("line", "size"),
    [
        (b"0\r\n", 0),
        (b"1A\r\n", 26),
        (b"000a;name=text; other\r\n", 10),
        (b"a \r\n", 10),
        (b"\r\n", None),
        (b"-1\r\n", None),
        (b"0x1\r\n", None),
        (b"1\n", None),
        (b"1_0\r\n", None),
        (b"123456789\r\n", None),
    ],
)
def test_a_chunk_is_as_long_as_7_1_has_it(line: bytes, size: int | None) -> None:
    assert chunk_bytes(line) == size


@pytest.mark.parametrize(
    ("line", "fields", "closes", "continues"),
    [
        # 9.3 and 9.6, and RFC 9110, 10.1.1.
        ("GET / HTTP/1.1", [], False, False),
        ("GET / HTTP/1.1", ["Connection: keep-alive, CLOSE"], True, False),
        ("GET / HTTP/1.1", ["Connection: keep-alive", "Connection: close"], True, False),
        ("GET / HTTP/1.1", ["Connection: closed"], False, False),
        ("GET / HTTP/1.0", [], True, False),
        ("GET / HTTP/1.0", ["Expect: 100-continue"], True, False),
        ("GET / HTTP/1.1", ["Expect: 100-Continue"], False, True),
    ],
)
def test_a_connection_goes_on_as_its_client_has_it(
    line: str, fields: list[str], closes: bool, continues: bool
) -> None:
    request = get(*fields, line=line)
    assert isinstance(request, FileRequest)
    assert (request.closes, request.continues) == (closes, continues)


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        # RFC 9110, 14.1 and 14.2: one part by bytes; of all else nothing is said wrongly by all.
        (["Range: bytes=3-5"], FilePart(3, 5)),
        (["RANGE: Bytes=3-"], FilePart(3, None)),
        (["Range: bytes=-5"], FilePart(None, 5)),
        (["Range: bytes=5-3"], None),
        (["Range: bytes=-"], None),
        (["Range: bytes=1-2,4-5"], None),
        (["Range: lines=1-2"], None),
        (["Range: bytes=1-2", "Range: bytes=4-5"], None),
        (["Range: bytes=3-5", 'If-Range: "tag"'], None),
    ],
)
def test_a_part_is_that_which_was_asked_for(fields: list[str], part: FilePart | None) -> None:
    request = get(*fields)
    assert isinstance(request, FileRequest)
    assert request.part == part
    assert get(*fields, line="HEAD /once/script HTTP/1.1") == FileRequest(
        "HEAD", "/once/script", None, closes=False, body=0, continues=False
    )


@given(st.integers(0, 12) | st.none(), st.integers(0, 12) | st.none(), st.integers(0, 10))
def test_a_part_is_within_its_file(first: int | None, last: int | None, size: int) -> None:
    start, end = FilePart(first, last).within(size)
    assert 0 <= start <= end <= size or (start >= end and last is not None)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_request_or_refused(data: bytes) -> None:
    assert isinstance(read_head(data), FileRequest | HTTPStatus)
