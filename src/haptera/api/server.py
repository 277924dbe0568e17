"""Serving the API inside the daemon's own loop: uvicorn without its signals and its logs."""

import asyncio
import contextlib
import errno
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from haptera.api.callers import PEER
from haptera.model.errors import HapteraError
from haptera.rest.unix_path import short
from haptera.runtime.network.peers import CertifiedPeer, Peer, unix_peer
from haptera.runtime.network.tls import client_of

BACKLOG: Final = 256
CONNECTIONS_MAX: Final = 512
_SHUTDOWN_WITHIN_S: Final = 1
_KEEP_ALIVE_S: Final = 15


class Server:
    """Serves an app on a listening socket, with TLS or without: `run()` until `stop()`."""

    def __init__(
        self, app: Starlette, listener: socket.socket, tls: ssl.SSLContext | None = None
    ) -> None:
        self._app = app
        self._listener = listener
        self._server = _Quiet(
            uvicorn.Config(
                app,
                http=_Telling,
                ssl_context_factory=None if tls is None else lambda *_: tls,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=CONNECTIONS_MAX,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=_SHUTDOWN_WITHIN_S,
            )
        )

    async def run(self) -> None:
        """Serve; a cancelled run has let go of its connections too."""
        serving = asyncio.ensure_future(self._server.serve(sockets=[self._listener]))
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            self.stop()
            await serving
            raise

    def stop(self) -> None:
        self._app.state.streams.close()
        self._server.should_exit = True


class _Telling(H11Protocol):
    """Has each request say who is at the other end, as far as the connection itself tells."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, PEER: _peer(transport)}


def _peer(transport: asyncio.Transport) -> Peer | None:
    end = transport.get_extra_info("socket")
    if end is not None and end.family == socket.AF_UNIX:
        return unix_peer(end)
    certified = client_of(transport.get_extra_info("peercert"))
    return None if certified is None else CertifiedPeer(*certified)


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
            where=f"{address}:{port}/tcp",
            do="choose another address with --listen or --api, or end what listens there",
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
