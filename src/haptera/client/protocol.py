"""How a call is made, without a socket: which operation comes next, and what comes of them all.

A client of either sort does the operations that `asking` and `following` yield, and sends back
the bytes that it received, or throws in what failed. These and all else here are structs: each
command imports them, and a dataclass takes forty times as long to make.
"""

from collections.abc import Generator
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Generic, NoReturn, TypeAlias, TypeVar

import msgspec

from haptera.client.access import Access
from haptera.client.address import parse_address
from haptera.client.call import ApiAnswer, ApiCall
from haptera.client.errors import refused, unreachable
from haptera.client.sse import Events
from haptera.model.errors import Code, HapteraError
from haptera.rest.schemas import Event

if TYPE_CHECKING:
    from haptera.client.http1 import HttpExchange

CONNECT_WITHIN_S: Final = 10.0
# Between two pieces of an answer, and until the first.
ANSWER_WITHIN_S: Final = 60.0
TELL_WAITING_AFTER_S: Final = 3.0
ANSWER_BYTES_MAX: Final = 512 * 1_048_576
# The server says that it is there every 15 s.
SILENCE_S: Final = 45.0
BACK_OFF_S: Final = (0.2, 0.5, 1.0, 2.0, 5.0)
# Connections that one client keeps for its next calls.
KEPT_MAX: Final = 4

Shape = TypeVar("Shape")


class Open(msgspec.Struct, frozen=True):
    """Connect, in place of any connection that there was."""

    within_s: float = CONNECT_WITHIN_S


class Send(msgspec.Struct, frozen=True):
    data: bytes
    within_s: float = ANSWER_WITHIN_S


class Receive(msgspec.Struct, frozen=True):
    """Send in what comes; nothing where the connection ended."""

    within_s: float


class Pause(msgspec.Struct, frozen=True):
    for_s: float


class Waiting(msgspec.Struct, frozen=True):
    """The answer takes long: say so."""


class CallDone(msgspec.Struct, Generic[Shape], frozen=True):
    """All is done; `keeps` says that the connection may serve the next call."""

    given: ApiAnswer[Shape]
    keeps: bool


class Arrived(msgspec.Struct, frozen=True):
    """News; with `fresh`, all that was known before is to be forgotten.

    What there is comes in several, of which the last is `whole`, as is all that comes later.
    """

    fresh: bool
    event: Event
    whole: bool


class Line(msgspec.Struct, Generic[Shape], frozen=True):
    """One line of an answer that comes line by line."""

    told: Shape


class Broken(msgspec.Struct, frozen=True):
    """The stream broke and is tried again."""

    error: HapteraError


Operation: TypeAlias = Open | Send | Receive | Pause | Waiting
Asking: TypeAlias = Generator[Operation | CallDone[Shape], bytes, None]
Following: TypeAlias = Generator[Operation | Arrived | Broken, bytes, None]
Reading: TypeAlias = Generator[Operation | Line[Shape], bytes, None]
_Answering: TypeAlias = Generator[Operation, bytes, tuple["HttpExchange", bytes]]


def asking(call: ApiCall[Shape], access: Access, *, kept: bool) -> Asking[Shape]:
    """One call; `kept` says that there is a connection already, of an earlier one.

    Raises:
        UnreachableError: nobody answers there.
        RefusedError: the answer is a problem, in the server's words.
        HapteraError: it is of another shape.
    """
    try:
        exchange, body = yield from _exchanged(call, access, kept=kept)
    except UnicodeEncodeError:
        raise  # what is to be sent is no text, and nothing was sent
    except (OSError, EOFError, ValueError) as error:
        raise unreachable(access.url, error) from None
    assert exchange.status is not None, "it has ended"
    if not 200 <= exchange.status < 300:
        raise refused(body, access.url, exchange.status)
    given = ApiAnswer(_decoded(body, call.gives, access.url), exchange.headers.get("etag"))
    yield CallDone(given, exchange.keeps)


def following(call: ApiCall[Event], access: Access) -> Following:
    """What the server tells, as it comes; after a break, what was missed.

    Raises:
        RefusedError: the server refuses (a wrong token, say).
    """
    place = _Place()
    while True:
        try:
            yield from _stream(call, access, place)
        except _GoneError:
            place.id = None
            continue
        except (OSError, EOFError, ValueError) as error:
            yield Broken(unreachable(access.url, error))
        yield Pause(BACK_OFF_S[min(place.breaks, len(BACK_OFF_S) - 1)])
        place.breaks += 1


def reading(call: ApiCall[Shape], access: Access) -> Reading[Shape]:
    """What is answered in lines, as they come, to the last one.

    Raises:
        UnreachableError: nobody answers there, or what answered is gone before its end.
        RefusedError: the answer is a problem, in the server's words.
    """
    exchange, begun = _exchange(call, access), b""
    try:
        yield Open()
        yield Send(exchange.request)
        body = b""
        while exchange.status is None:
            body += exchange.feed((yield Receive(ANSWER_WITHIN_S)))
        if exchange.status != HTTPStatus.OK:
            yield from _refuse(exchange, body, access)
        while True:
            *whole, begun = (begun + body).split(b"\n")
            for line in whole:
                yield Line(_decoded(line, call.gives, access.url))
            if exchange.ended:
                return
            body = exchange.feed((yield Receive(SILENCE_S)))
    except (OSError, EOFError, ValueError) as error:
        raise unreachable(access.url, error) from None


class _Place(msgspec.Struct):
    """How far a stream was read, and how often it broke since anything came."""

    id: str | None = None
    breaks: int = 0


class _GoneError(Exception):
    """The place in the stream is no longer known there."""


def _exchanged(call: ApiCall[Shape], access: Access, *, kept: bool) -> _Answering:
    if kept:
        try:
            return (yield from _answered(_exchange(call, access)))
        except (ConnectionError, EOFError):
            pass  # It was closed meanwhile; only what may be sent again is sent over a kept one.
    exchange = _exchange(call, access)
    yield Open()
    return (yield from _answered(exchange))


def _answered(exchange: "HttpExchange") -> _Answering:
    yield Send(exchange.request)
    body = bytearray()
    received = yield from _first()
    while True:
        body += exchange.feed(received)
        if len(body) > ANSWER_BYTES_MAX:
            raise ValueError(f"more than {ANSWER_BYTES_MAX} bytes")
        if exchange.ended:
            return exchange, bytes(body)
        received = yield Receive(ANSWER_WITHIN_S)


def _first() -> Generator[Operation, bytes, bytes]:
    """The first bytes; a long wait is announced."""
    try:
        return (yield Receive(TELL_WAITING_AFTER_S))
    except TimeoutError:
        yield Waiting()
    return (yield Receive(ANSWER_WITHIN_S - TELL_WAITING_AFTER_S))


def _stream(call: ApiCall[Event], access: Access, place: _Place) -> Following:
    headers = {"Accept": "text/event-stream"}
    if place.id is not None:
        headers["Last-Event-ID"] = place.id
    exchange, events = _exchange(call, access, headers), Events()
    yield Open()
    yield Send(exchange.request)
    body = exchange.feed((yield Receive(CONNECT_WITHIN_S)))
    while exchange.status is None:
        body = exchange.feed((yield Receive(CONNECT_WITHIN_S)))
    if exchange.status != HTTPStatus.OK:
        if exchange.status == HTTPStatus.GONE and place.id is not None:
            raise _GoneError
        yield from _refuse(exchange, body, access)
    while True:
        for sent in events.feed(body):
            event = _decoded(sent.data, call.gives, access.url)
            place.breaks = 0
            place.id = sent.place or place.id
            yield Arrived(sent.name == "snapshot", event, place.id is not None)
        if exchange.ended:
            raise EOFError("the stream ended")
        body = exchange.feed((yield Receive(SILENCE_S)))


def _refuse(
    exchange: "HttpExchange", body: bytes, access: Access
) -> Generator[Operation, bytes, NoReturn]:
    while not exchange.ended:
        body += exchange.feed((yield Receive(CONNECT_WITHIN_S)))
        if len(body) > ANSWER_BYTES_MAX:
            break
    raise refused(body, access.url, exchange.status or 0)


def _exchange(
    call: ApiCall[Shape], access: Access, more: dict[str, str] | None = None
) -> "HttpExchange":
    from haptera.client.http1 import HttpExchange  # only here: many commands ask nobody

    headers = {"Host": parse_address(access.url).header, **call.headers, **(more or {})}
    if access.token is not None:
        headers["Authorization"] = f"Bearer {access.token}"
    body = None
    if call.body is not None:
        headers["Content-Type"] = "application/json"
        body = msgspec.json.encode(call.body)
    try:
        return HttpExchange(call.method, call.target, headers, body)
    except ValueError as error:
        what = f"cannot be sent: {error}"
        raise HapteraError(what, where=access.url, do="correct the token or the header") from None


def _decoded(answer: bytes | str, shape: type[Shape], url: str) -> Shape:
    if shape is str:  # No JSON: text for another program.
        text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
        return msgspec.convert(text, shape)
    try:
        return msgspec.json.decode(answer, type=shape)
    except (ValueError, RecursionError) as error:
        raise HapteraError(
            f"unexpected answer: {error}",
            where=url,
            do="use the same version here as there",
            code=Code.VERSION_MISMATCH,
        ) from None
