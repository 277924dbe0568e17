"""The HTTP server: GET and HEAD of what a machine is offered, to that machine only."""

import asyncio
import logging
import os
import re
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

from haptera.modules.netboot.content import CLOCK, INVITATION
from haptera.modules.netboot.offers import BootOffer, Here, Offers
from haptera.modules.regular import open_regular
from haptera.sdk import HapteraError, Refused

HEAD_BYTES_MAX: Final = 8_192
HEAD_S_MAX: Final = 10.0
SEND_S_MAX: Final = 600.0
CONNECTIONS_MAX: Final = 512
STRANGERS_MAX: Final = 32
REQUESTS_MAX: Final = 100
_LINE: Final = re.compile(rb"(GET|HEAD) /([A-Za-z0-9_-]{1,64})/([a-z0-9.-]{1,32}) HTTP/1\.[01]")
_RANGE: Final = re.compile(rb"\r\nrange: *bytes=([0-9]{1,15})-([0-9]{0,15}) *\r\n", re.IGNORECASE)
_CLOSES: Final = re.compile(rb"\r\nconnection: *close *\r\n", re.IGNORECASE)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Request:
    """One request that can be understood."""

    method: str
    nonce: str
    name: str
    range: tuple[int, int | None] | None
    closes: bool


class HttpServer:
    """Serves connections, each for a limited number of requests."""

    def __init__(self, offers: Offers, wall_s: Callable[[], float]) -> None:
        self._offers = offers
        self._wall_s = wall_s
        # Of those who are offered something, and of strangers, who take no room from them.
        self._connections = Counter[bool]()

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        peer = writer.get_extra_info("peername")[0]
        known = self._offers.for_address(peer) is not None
        self._connections[known] += 1
        try:
            if self._connections[known] <= (CONNECTIONS_MAX if known else STRANGERS_MAX):
                for _ in range(REQUESTS_MAX):
                    if not await self._serve_one(peer, reader, writer):
                        break
        except (
            OSError,
            Refused,
            TimeoutError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
        ):
            pass  # It is gone, or sends what is no request.
        finally:
            self._connections[known] -= 1
            with closing(writer):
                pass

    async def _serve_one(
        self, peer: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether there may come another."""
        async with asyncio.timeout(HEAD_S_MAX):
            head = await reader.readuntil(b"\r\n\r\n")
        request = _parse(head)
        async with asyncio.timeout(SEND_S_MAX):
            if request is None:
                await _refuse(writer, HTTPStatus.BAD_REQUEST)
                return False
            offer = self._offers.for_address(peer)
            if offer is None or offer.nonce != request.nonce:
                _log.warning("%s requests %s, which it is not offered", peer, request.name)
                await _refuse(writer, HTTPStatus.NOT_FOUND)
            else:
                await self._give(offer, request, writer)
        return not request.closes

    async def _give(
        self, offer: BootOffer, request: _Request, writer: asyncio.StreamWriter
    ) -> None:
        found = self._find(offer, request.name)
        if found is None:
            await _refuse(writer, HTTPStatus.NOT_FOUND)
        elif isinstance(found, bytes):
            await _send(writer, request, found)
            self._given(offer, request)
        else:
            await _send_file(writer, request, found)
            self._given(offer, request)

    def _find(self, offer: BootOffer, name: str) -> Path | bytes | None:
        match name:
            case "clock":
                return f"{self._wall_s():.0f}\n".encode()
            case _:
                return offer.content.get(name) or offer.files.get(name) or offer.loader(name)

    def _given(self, offer: BootOffer, request: _Request) -> None:
        if request.method != "GET" or request.name == CLOCK:
            return
        if offer.loader(request.name) is not None:
            offer.give_loader()
        else:
            offer.reached = f"has its {request.name}"
        if request.name == INVITATION:
            # All of it was for one boot, which goes on without us.
            self._offers.close(offer.node)


async def serve_http(offers: Offers, here: Here, wall_s: Callable[[], float]) -> asyncio.Server:
    """Listen.

    Raises:
        HapteraError: another server listens there, or the address is not this machine's.
    """
    server = HttpServer(offers, wall_s)
    try:
        return await asyncio.start_server(
            server.attend, str(here.address), here.http_port, limit=HEAD_BYTES_MAX
        )
    except OSError as error:
        raise HapteraError(
            f"HTTP cannot be served: {error.strerror}",
            where=f"{here.address}, port {here.http_port}",
            do="give the module an address of this machine, and a port that is free",
        ) from None


def _parse(head: bytes) -> _Request | None:
    line, _, rest = head.partition(b"\r\n")
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    method, nonce, name = (part.decode("ascii") for part in match.groups())
    fields = b"\r\n" + rest
    found = _RANGE.search(fields)
    part = None
    if found is not None:
        part = int(found[1]), int(found[2]) if found[2] else None
    closes = line.endswith(b"1.0") or _CLOSES.search(fields) is not None
    return _Request(method, nonce, name, part, closes)


async def _refuse(writer: asyncio.StreamWriter, status: HTTPStatus) -> None:
    writer.write(_head(status, 0))
    await writer.drain()


async def _send(writer: asyncio.StreamWriter, request: _Request, content: bytes) -> None:
    start, count, head = _part(request, len(content))
    writer.write(head)
    if request.method == "GET":
        writer.write(content[start : start + count])
    await writer.drain()


async def _send_file(writer: asyncio.StreamWriter, request: _Request, path: Path) -> None:
    # Opening and measuring a local file takes less than to hand it to a thread.
    with open_regular(path) as file:
        start, count, head = _part(request, os.fstat(file.fileno()).st_size)
        writer.write(head)
        await writer.drain()
        if request.method == "GET" and count:
            loop = asyncio.get_running_loop()
            await loop.sendfile(writer.transport, file, start, count)


def _part(request: _Request, size: int) -> tuple[int, int, bytes]:
    """Where to begin, how much to send, and the head that says so."""
    if request.range is None:
        return 0, size, _head(HTTPStatus.OK, size)
    start, last = request.range
    end = size if last is None else min(last + 1, size)
    if start >= end:
        return 0, 0, _head(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, 0, f"bytes */{size}")
    told = f"bytes {start}-{end - 1}/{size}"
    return start, end - start, _head(HTTPStatus.PARTIAL_CONTENT, end - start, told)


def _head(status: HTTPStatus, length: int, part: str | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status.value} {status.phrase}", f"Content-Length: {length}"]
    lines += ["Accept-Ranges: bytes", "Cache-Control: no-store"]
    lines += [] if part is None else [f"Content-Range: {part}"]
    return "\r\n".join([*lines, "", ""]).encode("ascii")
