"""Serving the API inside the daemon's own loop: uvicorn without its signals and its logs."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address
from typing import Final

import uvicorn
from starlette.applications import Starlette

from haptera.model.errors import HapteraError

BACKLOG: Final = 256
CONNECTIONS_MAX: Final = 512
_SHUTDOWN_WITHIN_S: Final = 1
_KEEP_ALIVE_S: Final = 15


class Server:
    """Serves an app on a listening socket: `run()` until `stop()`."""

    def __init__(self, app: Starlette, listener: socket.socket) -> None:
        self._app = app
        self._listener = listener
        self._server = _Quiet(
            uvicorn.Config(
                app,
                http="h11",
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


class _Quiet(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # signals are the daemon's


def check_loopback(address: str) -> None:
    """Refuse an address at which the API would be reached from elsewhere.

    Raises:
        HapteraError: it is not of this machine only.
    """
    try:
        local = IPv4Address(address).is_loopback
    except AddressValueError:
        local = False
    if not local:
        raise HapteraError(
            "the API has no TLS yet, so it is served on this machine only",
            where=f"--listen {address}",
            do="give a loopback address, 127.0.0.1 say",
        )


def listen(address: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        HapteraError: the port is in use, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise HapteraError(
            f"cannot listen: {error.strerror}",
            where=f"{address}:{port}/tcp",
            do="choose another address with --listen, or end what listens there",
        ) from None
    return listener
