"""One connection to the API: whose it is, when it must have asked, and when it gives way.

What is relied on of uvicorn beyond its public names is in this file: its versions are bounded in
`pyproject.toml`, and `tests/api/test_connections.py` holds a new one to it.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import uvicorn
from h11 import LocalProtocolError
from uvicorn.protocols.http.h11_impl import H11Protocol

from haptera.api.requests.callers import CERTIFICATE, LET_IN, PEER
from haptera.runtime.network.crowd import Crowd, Guest
from haptera.runtime.network.peers import CertifiedPeer, Peer, unix_peer
from haptera.runtime.network.tls import client_of, hang_up

# From the connection to the end of the first header.
HEADER_WITHIN_S: Final = 10.0
# From each answer to the end of the next header.
KEEP_ALIVE_S: Final = 15
# Where each request finds the connection that brought it.
_CONNECTION: Final = "connection"

_App = Callable[[Any, Any, Any], Awaitable[None]]


class Connection(H11Protocol):
    """A guest that is served while a request is answered, and waits else: within a time."""

    def __init__(
        self,
        server: uvicorn.Server,
        crowd: Crowd,
        guest: Guest,
        within_s: float,
        let_in: Callable[[], None],
    ) -> None:
        """`let_in` is called whenever a request of it was let in, by a token or certificate."""
        super().__init__(config=server.config, server_state=server.server_state, app_state={})
        self._crowd = crowd
        self._guest = guest
        self._within_s = within_s
        self.let_in = let_in
        self._answering = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._gone = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        shown = transport.get_extra_info("peercert")
        self.app_state = {PEER: _peer(transport), CERTIFICATE: shown, _CONNECTION: self}
        self._guest.drop = transport.abort
        self._wait(self._within_s, 0)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._gone = True
        self._stop_waiting()
        self._crowd.leave(self._guest)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; a request whose rest it was to be has gone, and has no answer."""
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        # Where an answer has begun, nothing can be said any more.
        with suppress(LocalProtocolError):
            super().send_400_response(msg)
        self.transport.close()

    def begun(self) -> None:
        """A request has come; where requests are sent ahead, one may begin as another ends."""
        self._answering += 1
        self._stop_waiting()
        self._crowd.serve(self._guest)

    def ended(self) -> None:
        """It is answered, though maybe not read."""
        self._answering -= 1
        if not self._answering and not self._gone:
            self._crowd.wait(self._guest)
            self._wait(KEEP_ALIVE_S, self._unread())

    def _wait(self, within_s: float, unread: int) -> None:
        if not self.transport.is_closing() or unread:
            self._deadline = self.loop.call_later(within_s, self._overdue, unread)

    def _overdue(self, unread: int) -> None:
        """It goes; but for one that reads a long answer, and has read some of it since."""
        still = self._unread()
        if 0 < still < unread:
            self._wait(KEEP_ALIVE_S, still)
        else:
            self._crowd.counts["too slow"] += not self.transport.is_closing() and not unread
            hang_up(self.transport)

    def _unread(self) -> int:
        """How much of what was answered the other end has not taken yet."""
        # The transport of Python 3.11 has no protocol left once it was closed twice.
        with suppress(AttributeError):
            return self.transport.get_write_buffer_size()
        return 0

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def noted(app: _App) -> _App:
    """The app, whose requests tell their connection when they begin and end."""

    async def run(scope: Any, receive: Any, send: Any) -> None:
        connection: Connection = scope["state"].pop(_CONNECTION)
        connection.begun()
        try:
            await app(scope, receive, send)
        finally:
            if scope["state"].get(LET_IN):
                connection.let_in()
            connection.ended()

    return run


def _peer(transport: asyncio.Transport) -> Peer | None:
    end = transport.get_extra_info("socket")
    if end is not None and end.family == socket.AF_UNIX:
        return unix_peer(end)
    certified = client_of(transport.get_extra_info("peercert"))
    return None if certified is None else CertifiedPeer(*certified)
