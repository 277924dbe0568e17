"""Following the API's events: from a snapshot on, over breaks, until nobody listens."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode, urlsplit

import msgspec

from haptera.api.shapes import Event
from haptera.cli.client import Client, problem_error, unreachable
from haptera.model.errors import HapteraError

LINE_BYTES_MAX: Final = 16 * 1_048_576
HEADERS_MAX: Final = 64
# The server says that it is there every 15 s.
SILENCE_S: Final = 45.0
CONNECT_WITHIN_S: Final = 10.0
BACK_OFF_S: Final = (0.2, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Arrived:
    """News; with `fresh`, all that was known before is to be forgotten."""

    fresh: bool
    event: Event


@dataclass(frozen=True, slots=True)
class Broken:
    """The stream broke and is tried again."""

    error: HapteraError


class _GoneError(Exception):
    """The place in the stream is no longer known there."""


async def follow(
    client: Client, query: Mapping[str, str] | None = None
) -> AsyncGenerator[Arrived | Broken, None]:
    """What the server tells, as it comes; after a break, what was missed.

    The query says what is wanted: `types`, `kinds`, `select`.

    Raises:
        HapteraError: the server refuses (a wrong token, say).
    """
    place = _Place("/v1/events" + (f"?{urlencode(query)}" if query else ""))
    attempt = 0
    while True:
        try:
            async with aclosing(_events(client, place)) as events:
                async for arrived in events:
                    attempt = 0
                    yield arrived
        except _GoneError:
            place.id = None
            continue
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            yield Broken(unreachable(client.url, error))
        await asyncio.sleep(BACK_OFF_S[min(attempt, len(BACK_OFF_S) - 1)])
        attempt += 1


@dataclass(slots=True)
class _Place:
    """Which stream, and how far it was read."""

    path: str
    id: str | None = None


async def _events(client: Client, place: _Place) -> AsyncGenerator[Arrived, None]:
    parts = urlsplit(client.url)
    secure = parts.scheme == "https"
    async with asyncio.timeout(CONNECT_WITHIN_S):
        reader, writer = await asyncio.open_connection(
            parts.hostname, parts.port or (443 if secure else 80), limit=LINE_BYTES_MAX, ssl=secure
        )
    try:
        # HTTP/1.0: the body is what comes until the end, without chunks to take apart.
        writer.write(_request(client, parts.netloc, place))
        status = await _status(reader)
        if status == 410:
            raise _GoneError
        if status != 200:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                raise problem_error(await reader.read(LINE_BYTES_MAX), client.url, status)
        async for arrived in _parsed(reader, place):
            yield arrived
    finally:
        writer.close()


def _request(client: Client, host: str, place: _Place) -> bytes:
    headers = {**client.headers, "Host": host, "Accept": "text/event-stream"}
    if place.id is not None:
        headers["Last-Event-ID"] = place.id
    lines = [f"GET {place.path} HTTP/1.0", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


async def _status(reader: asyncio.StreamReader) -> int:
    """The status of the answer; its headers are passed over."""
    first = (await _line(reader)).split()
    for _ in range(HEADERS_MAX):
        if not await _line(reader):
            return int(first[1])
    raise ValueError("too many headers")


async def _parsed(reader: asyncio.StreamReader, place: _Place) -> AsyncGenerator[Arrived, None]:
    fields: dict[str, str] = {}
    while True:
        line = await _line(reader)
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
            continue
        if "data" in fields:
            event = msgspec.json.decode(fields["data"], type=Event)
            yield Arrived(fields.get("event") == "snapshot", event)
            place.id = fields.get("id", place.id)
        fields = {}


async def _line(reader: asyncio.StreamReader) -> str:
    async with asyncio.timeout(SILENCE_S):
        line = await reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError("the stream ended")
    return line.decode().rstrip("\r\n")
