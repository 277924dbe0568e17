"""Serving TLS: so many connections at once, each handshake within a time, none left behind."""

import asyncio
import os
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

from haptera.kinds.host_port import HostPort
from haptera.model.errors import Code, HapteraError
from haptera.runtime.clock import now_ns
from haptera.runtime.network.accepting import Accepting
from haptera.runtime.network.crowd import Crowd, Guest
from haptera.runtime.network.handshakes import Handshakes
from haptera.runtime.network.tls import hang_up
from haptera.sdk.boundary import Boundary

CONNECTIONS_MAX: Final = 512
BACKLOG_MAX: Final = 1024
READ_AHEAD_BYTES_MAX: Final = 64 * 1024
_SHUTDOWN_WITHIN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Talk:
    """A connection whose handshake is done: its streams, and the caller's address.

    Until `heard` is called, which is to be when all of what the caller wants was heard, it gives
    way to new ones where there are too many. `let_in` is to be called once it is somebody whom we
    know: then its address does not wait for strangers' handshakes.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    host: str
    heard: Callable[[], None]
    let_in: Callable[[], None] = lambda: None


Converse = Callable[[Talk], Awaitable[None]]


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
            f"cannot listen: {os.strerror(error.errno or 0)}",
            where=f"{HostPort(host, port)}/tcp",
            do="stop what uses it, or give another address or port",
            code=Code.CANNOT_LISTEN,
        ) from error
    listener.settimeout(0)
    return listener


class TlsServer:
    """Serves until cancelled; a conversation's failure is its own. `counts` says how they failed.

    `converse` limits its own time; whatever it leaves open is closed. `known` are addresses that
    were let in before this server began.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        converse: Converse,
        counts: Counter[str],
        *,
        handshake_within_s: float,
        connections_max: int = CONNECTIONS_MAX,
        known: Iterable[str] = (),
    ) -> None:
        self._context = context
        self._converse = converse
        self._within_s = handshake_within_s
        self._counts = counts
        self._crowd = Crowd(connections_max, counts)
        self._handshakes = Handshakes(counts, known)

    async def serve(self, listener: socket.socket) -> None:
        """Take connections; where there are too many, who has not said anything yet gives way."""
        accepting = Accepting(listener)
        async with asyncio.TaskGroup() as group:
            while True:
                connection, host = await accepting.next()
                may = self._handshakes.admit(host, now_ns())
                guest = self._crowd.join(host) if may else None
                if guest is None:
                    connection.close()
                    continue
                guest.drop = group.create_task(self._serve(connection, host, guest)).cancel

    async def _serve(self, connection: socket.socket, host: str, guest: Guest) -> None:
        try:
            with Boundary(f"the connection from {host}"):
                await self._talk(connection, host, guest)
        finally:
            self._crowd.leave(guest)

    async def _talk(self, connection: socket.socket, host: str, guest: Guest) -> None:
        try:
            async with asyncio.timeout(self._within_s):
                reader, writer = await self._open(connection)
        except OSError:  # a time-out too
            self._counts["no handshake"] += 1
            return
        try:
            await self._converse(
                Talk(
                    reader,
                    writer,
                    host,
                    lambda: self._crowd.serve(guest),
                    lambda: self._handshakes.note_known(host),
                )
            )
        except OSError:
            self._counts["hung up"] += 1
        finally:
            hang_up(writer.transport)

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
