"""Serving the API inside the daemon's own loop: uvicorn without its signals and its logs."""

import asyncio
import contextlib
import errno
import os
import socket
import ssl
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette

from haptera.api.serving.connection import HEADER_WITHIN_S, KEEP_ALIVE_S, Connection, noted
from haptera.kinds.host_port import HostPort
from haptera.model.errors import Code, HapteraError
from haptera.rest.unix_path import short
from haptera.runtime.clock import now_ns
from haptera.runtime.network.accepting import Accepting
from haptera.runtime.network.crowd import Crowd, Guest
from haptera.runtime.network.handshakes import Handshakes
from haptera.runtime.network.peers import unix_peer
from haptera.sdk.boundary import Boundary

BACKLOG: Final = 256
CONNECTIONS_MAX: Final = 512
_SHUTDOWN_WITHIN_S: Final = 1


class Server:
    """Serves an app on a listening socket, with TLS or without: `run()` until `stop()`.

    Of uvicorn it takes the loop, and the protocol for each connection; it accepts them itself.
    `counts` says how many had to give way, or were too slow. A Unix socket's other ends are told
    apart by who they are.
    """

    def __init__(
        self,
        app: Starlette,
        listener: socket.socket,
        tls: ssl.SSLContext | None = None,
        *,
        counts: Counter[str] | None = None,
        connections_max: int = CONNECTIONS_MAX,
        within_s: float = HEADER_WITHIN_S,
    ) -> None:
        self._app = app
        self._listener = listener
        self._tls = tls
        self._counts: Counter[str] = Counter() if counts is None else counts
        self._crowd = Crowd(connections_max, self._counts)
        self._handshakes = None if tls is None else Handshakes(self._counts)
        self._within_s = within_s
        self._server = _Quiet(
            uvicorn.Config(
                noted(app),
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=_SHUTDOWN_WITHIN_S,
            )
        )

    async def run(self) -> None:
        """Serve; a cancelled run has let go of its connections too."""
        self._accepting = asyncio.ensure_future(self._accept())
        serving = asyncio.ensure_future(self._server.serve(sockets=[]))
        both = {self._accepting, serving}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.stop()
            await asyncio.wait(both)
            self._listener.close()
        for one in both:
            if not one.cancelled():
                one.result()  # raises where a bug ended it

    def stop(self) -> None:
        if (streams := getattr(self._app.state, "streams", None)) is not None:
            streams.close()
        self._accepting.cancel()
        self._server.should_exit = True

    async def _accept(self) -> None:
        accepting = Accepting(self._listener)
        async with asyncio.TaskGroup() as opening:
            while True:
                end, address = await accepting.next()
                if end.family == socket.AF_UNIX:
                    address = f"uid {unix_peer(end).uid}"
                pace = self._handshakes
                may = pace is None or pace.admit(address, now_ns())
                guest = self._crowd.join(address) if may else None
                if guest is None:
                    end.close()
                    continue
                task = opening.create_task(self._open(end, guest, address))
                # Cancelled before it began, it cannot close what it was to open.
                task.add_done_callback(partial(_close_cancelled, end))
                guest.drop = task.cancel

    async def _open(self, end: socket.socket, guest: Guest, address: str) -> None:
        """Up to the end of the handshake; from then on the connection is the protocol's."""
        loop = asyncio.get_running_loop()
        handshake_s = None if self._tls is None else self._within_s
        with contextlib.suppress(OSError), Boundary(f"the connection from {address}", (OSError,)):
            await loop.connect_accepted_socket(
                lambda: self._protocol(guest, address),
                end,
                ssl=self._tls,
                ssl_handshake_timeout=handshake_s,
            )
            return
        self._counts["no handshake"] += 1
        self._crowd.leave(guest)

    def _protocol(self, guest: Guest, address: str) -> Connection:
        def let_in() -> None:
            if self._handshakes is not None:
                self._handshakes.note_known(address)

        return Connection(self._server, self._crowd, guest, self._within_s, let_in)


def _close_cancelled(end: socket.socket, task: asyncio.Task[None]) -> None:
    if task.cancelled():
        end.close()


class _Quiet(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # signals are the daemon's


def listen(address: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        HapteraError: the port is in use, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # asyncio has small answers wait for nothing only where the protocol is named.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise HapteraError(
            f"cannot listen: {error.strerror}",
            where=f"{HostPort(address, port)}/tcp",
            do="choose another address with --listen or --api, or end what listens there",
            code=Code.CANNOT_LISTEN,
        ) from None
    return listener


def listen_unix(path: Path, mode: int) -> socket.socket:
    """A listening socket in the file system, which those may open whom the mode lets.

    One that a process left behind when it was killed is replaced.

    Raises:
        HapteraError: somebody serves there, or it cannot be made.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _clear(path)
        with short(path) as name:
            listener.bind(name)
        path.chmod(mode)  # Before anybody can connect.
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise HapteraError(
            f"cannot listen: {error.strerror or error}",
            where=str(path),
            do="choose another path with --socket, or end what listens there",
            code=Code.CANNOT_LISTEN,
        ) from None
    return listener


def _clear(path: Path) -> None:
    """Remove a socket at which nobody listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            with short(path) as name:
                probe.connect(name)
        except FileNotFoundError:
            return
        except ConnectionRefusedError:
            if path.is_socket():
                path.unlink()
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
