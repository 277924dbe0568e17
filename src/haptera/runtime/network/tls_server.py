"""Serving TLS: so many conversations at once, each handshake within a time, none left behind."""

import asyncio
import logging
import os
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from haptera.model.errors import HapteraError

CONVERSATIONS_AT_ONCE_MAX: Final = 64
BACKLOG_MAX: Final = 1024
READ_AHEAD_BYTES_MAX: Final = 64 * 1024
# When the process has no descriptor left, accepting is tried again this much later.
ACCEPT_AGAIN_S: Final = 0.1
_SHUTDOWN_WITHIN_S: Final = 1.0

# What is said once the handshake is done, and with whom: the streams, and the caller's address.
Converse = Callable[[asyncio.StreamReader, asyncio.StreamWriter, str], Awaitable[None]]

_log = logging.getLogger(__name__)


def listen(host: str, port: int) -> socket.socket:
    """A socket to serve on; port 0 takes a free one.

    Raises:
        HapteraError: there is no such address, or its port is in use.
    """
    try:
        listener = socket.create_server((host, port), backlog=BACKLOG_MAX)
    except OSError as error:
        raise HapteraError(
            # The socket module's own text would name the address again.
            f"cannot be listened on: {os.strerror(error.errno or 0)}",
            where=f"{host}:{port}/tcp",
            do="stop what uses it, or give another address or port",
        ) from error
    listener.settimeout(0)
    return listener


class TlsServer:
    """Serves until cancelled; a conversation's failure is its own. `counts` says how they failed.

    `converse` limits its own time; whatever it leaves open is closed.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        converse: Converse,
        counts: Counter[str],
        *,
        handshake_within_s: float,
    ) -> None:
        self._context = context
        self._converse = converse
        self._within_s = handshake_within_s
        self._counts = counts

    async def serve(self, listener: socket.socket) -> None:
        """Take connections, so many at once; the rest wait in the socket's backlog."""
        slots = asyncio.Semaphore(CONVERSATIONS_AT_ONCE_MAX)
        async with asyncio.TaskGroup() as group:
            while True:
                await slots.acquire()
                connection, address = await _accept(listener)
                task = group.create_task(self._serve(connection, address[0]))
                task.add_done_callback(lambda _: slots.release())

    async def _serve(self, connection: socket.socket, host: str) -> None:
        try:
            async with asyncio.timeout(self._within_s):
                reader, writer = await self._open(connection)
        except OSError:  # a time-out too
            self._counts["no handshake"] += 1
            return
        try:
            await self._converse(reader, writer, host)
        except OSError:
            self._counts["hung up"] += 1
        finally:
            writer.transport.abort()

    async def _open(
        self, connection: socket.socket
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Like `asyncio.start_server`, but for one accepted connection, its handshake counted."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=READ_AHEAD_BYTES_MAX, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            connection,
            ssl=self._context,
            ssl_handshake_timeout=self._within_s,
            ssl_shutdown_timeout=_SHUTDOWN_WITHIN_S,
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def _accept(listener: socket.socket) -> tuple[socket.socket, tuple[str, int]]:
    loop = asyncio.get_running_loop()
    while True:
        try:
            return await loop.sock_accept(listener)
        except OSError as error:
            _log.warning("no connection can be accepted: %s", error.strerror)
            await asyncio.sleep(ACCEPT_AGAIN_S)
