"""The HTTP server: GET and HEAD of what a machine is offered, to that machine only."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path
from typing import Final, cast

from haptera.modules.netboot.content import CLOCK, INVITATION
from haptera.modules.netboot.http_request import (
    BODY_BYTES_MAX,
    METHODS,
    FileRequest,
    chunk_bytes,
    read_head,
)
from haptera.modules.netboot.offers import BootOffer, Here, Offers
from haptera.modules.netboot.shares import Shares
from haptera.modules.regular import open_regular
from haptera.sdk import HapteraError, Refused

HEAD_BYTES_MAX: Final = 8_192
HEAD_S_MAX: Final = 10.0
SEND_S_MAX: Final = 600.0
# What was sent last is on its way for so long at most, when a connection ends.
END_S_MAX: Final = 5.0
END_BYTES_MAX: Final = 1 << 20
CONNECTIONS_MAX: Final = 512
# Firmware and loaders have one at a time, and leave it behind when they are reset.
CONNECTIONS_EACH_MAX: Final = 8
STRANGERS_MAX: Final = 32
REQUESTS_MAX: Final = 100

_log = logging.getLogger(__name__)


class HttpServer:
    """Serves connections, each for a limited number of requests."""

    def __init__(self, offers: Offers, wall_s: Callable[[], float]) -> None:
        self._offers = offers
        self._wall_s = wall_s
        self._connections = Shares[asyncio.Task[None]](
            all_max=CONNECTIONS_MAX, each_max=CONNECTIONS_EACH_MAX
        )
        # Who is offered nothing takes no place of who is.
        self._strangers = 0

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, if there is a place for it."""
        peer = writer.get_extra_info("peername")[0]
        try:
            if self._offers.for_address(peer) is None:
                self._strangers += 1
                try:
                    if self._strangers <= STRANGERS_MAX:
                        await self._serve(peer, reader, writer)
                finally:
                    self._strangers -= 1
            else:
                await self._serve_in_place(peer, reader, writer)
        except (OSError, Refused, TimeoutError):
            pass  # It is gone, or sends and reads nothing any more.
        finally:
            # What it has not read by now is not kept for it.
            writer.transport.abort()

    async def _serve_in_place(
        self, peer: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        loser = self._connections.enter(peer, task)
        if loser is task:
            _log.warning("%s gets no connection: %d are in use", peer, CONNECTIONS_MAX)
            return
        if loser is not None:
            loser.cancel()
        try:
            await self._serve(peer, reader, writer)
        finally:
            self._connections.leave(peer, task)

    async def _serve(
        self, peer: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        for _ in range(REQUESTS_MAX):
            if not await self._serve_one(peer, reader, writer):
                break
        async with asyncio.timeout(END_S_MAX):
            await _end(reader, writer)

    async def _serve_one(
        self, peer: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Whether there may come another."""
        try:
            async with asyncio.timeout(HEAD_S_MAX):
                request = await _read(reader, writer)
        except asyncio.IncompleteReadError:
            return False  # It has said all that it wanted.
        async with asyncio.timeout(SEND_S_MAX):
            if isinstance(request, HTTPStatus):
                await self._refuse(writer, request, closes=True)
                return False
            offer = self._offers.for_address(peer)
            nonce, _, name = request.path.removeprefix("/").partition("/")
            if offer is None or offer.nonce != nonce:
                _log.warning("%s requests %.80r, which it is not offered", peer, name)
                await self._refuse(writer, HTTPStatus.NOT_FOUND, closes=request.closes)
            else:
                await self._give(offer, name, request, writer)
        return not request.closes

    async def _give(
        self, offer: BootOffer, name: str, request: FileRequest, writer: asyncio.StreamWriter
    ) -> None:
        found = self._find(offer, name)
        if found is None:
            await self._refuse(writer, HTTPStatus.NOT_FOUND, closes=request.closes)
            return
        if isinstance(found, bytes):
            await self._send(writer, request, found)
        else:
            await self._send_file(writer, request, found)
        if request.method == "GET":
            self._given(offer, name)

    def _find(self, offer: BootOffer, name: str) -> Path | bytes | None:
        if name == CLOCK:
            return f"{self._wall_s():.0f}\n".encode()
        return offer.content.get(name) or offer.files.get(name) or offer.loader(name)

    def _given(self, offer: BootOffer, name: str) -> None:
        if name == CLOCK:
            return
        if offer.loader(name) is not None:
            offer.give_loader()
        else:
            offer.reached, offer.script_given = f"has its {name}", True
        if name == INVITATION:
            # All of it was for one boot, which goes on without us.
            self._offers.close(offer.node)

    async def _refuse(
        self, writer: asyncio.StreamWriter, status: HTTPStatus, *, closes: bool
    ) -> None:
        allowed = {"Allow": ", ".join(METHODS)}
        more = allowed if status == HTTPStatus.METHOD_NOT_ALLOWED else {}
        writer.write(self._head(status, 0, more, closes=closes))
        await writer.drain()

    async def _send(
        self, writer: asyncio.StreamWriter, request: FileRequest, content: bytes
    ) -> None:
        start, end, head = self._begin(request, len(content))
        writer.write(head)
        if request.method == "GET":
            writer.write(content[start:end])
        await writer.drain()

    async def _send_file(
        self, writer: asyncio.StreamWriter, request: FileRequest, path: Path
    ) -> None:
        # Opening and measuring a local file takes less than to hand it to a thread.
        with open_regular(path) as file:
            start, end, head = self._begin(request, os.fstat(file.fileno()).st_size)
            writer.write(head)
            await writer.drain()
            if request.method == "GET" and end > start:
                loop = asyncio.get_running_loop()
                await loop.sendfile(writer.transport, file, start, end - start)

    def _begin(self, request: FileRequest, size: int) -> tuple[int, int, bytes]:
        """From where to where to send a file of this size, and the head that says so."""
        closes = request.closes
        if request.part is None:
            return 0, size, self._head(HTTPStatus.OK, size, {}, closes=closes)
        start, end = request.part.within(size)
        if start >= end:
            status, told = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, f"bytes */{size}"
        else:
            status, told = HTTPStatus.PARTIAL_CONTENT, f"bytes {start}-{end - 1}/{size}"
        return start, end, self._head(status, end - start, {"Content-Range": told}, closes=closes)

    def _head(
        self, status: HTTPStatus, length: int, more: Mapping[str, str], *, closes: bool
    ) -> bytes:
        fields = {
            "Date": formatdate(self._wall_s(), usegmt=True),
            "Content-Length": str(length),
            "Accept-Ranges": "bytes",
            "Cache-Control": "no-store",
            **({"Connection": "close"} if closes else {}),
            **more,
        }
        lines = [f"{name}: {value}" for name, value in fields.items()]
        start = f"HTTP/1.1 {status.value} {status.phrase}"
        return "\r\n".join([start, *lines, "", ""]).encode("ascii")


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


async def _read(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> FileRequest | HTTPStatus:
    """The next request, its body read and dropped; or the status of its refusal."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        while not (head := head.lstrip(b"\r\n")):  # blank lines after the one before (2.2)
            head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        begun = await reader.readexactly(min(error.consumed, HEAD_BYTES_MAX))
        is_line = b"\r\n" not in begun.lstrip(b"\r\n")
        too_large = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        return HTTPStatus.REQUEST_URI_TOO_LONG if is_line else too_large
    request = read_head(head)
    if isinstance(request, HTTPStatus):
        return request
    if request.continues and request.body != 0:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    if request.body is None:
        return request if await _skip_chunks(reader) else HTTPStatus.BAD_REQUEST
    await reader.readexactly(request.body)
    return request


async def _skip_chunks(reader: asyncio.StreamReader) -> bool:
    """Read a body in chunks, and the fields behind it; whether it is one, and not too long."""
    left = BODY_BYTES_MAX
    with suppress(asyncio.LimitOverrunError):
        while size := chunk_bytes(line := await reader.readuntil(b"\r\n")):
            left -= len(line) + size
            if left < 0 or (await reader.readexactly(size + 2))[size:] != b"\r\n":
                return False
        while size == 0 and left > 0:
            line = await reader.readuntil(b"\r\n")
            if line == b"\r\n":
                return True
            left -= len(line)
    return False


async def _end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say that it is over, and read on: else the client may lose what was sent last (9.6)."""
    writer.write_eof()
    left = END_BYTES_MAX
    while left > 0 and (read := await reader.read(HEAD_BYTES_MAX)):
        left -= len(read)
    writer.close()
    await writer.wait_closed()
