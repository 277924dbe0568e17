"""A session of BGP over TCP (RFC 4271, 8): opened, kept alive, and ended with its reason."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, TypeVar

from bgp.attributes import MalformedError
from bgp.messages import (
    BAD_CAPABILITY,
    BAD_PEER_AS,
    GRACEFUL_RESTART,
    HEADER_BYTES,
    HOLD_TIMER_EXPIRED,
    IPV4_UNICAST,
    LONG_AS_NUMBERS,
    MULTIPROTOCOL,
    OPEN_ERROR,
    ROUTE_REFRESH,
    Capability,
    Keepalive,
    Message,
    Notification,
    Open,
    RouteRefresh,
    Update,
    encode,
    parse,
    size_of,
)

PORT: Final = 179
# How long the other side may be silent before its OPEN (RFC 4271, 8.2.2: "a large value").
OPEN_WITHIN_S: Final = 30
SESSION_ERROR: Final = 5  # of the state machine (RFC 4271, 6.6)
Expected = TypeVar("Expected", Open, Keepalive)
# Of the restart time: this side has been restarted, and of a family: its routes hold meanwhile.
_RESTARTED: Final = 0x8000
_FORWARDS: Final = b"\x80"


class SessionEndedError(Exception):
    """The session is over: the other side said why, or the connection is gone."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """The identity of this side, and its expectations of the other one."""

    as_number: int
    router_id: bytes
    peer_as: int
    hold_s: int = 90
    # How long the other side keeps our routes without us (RFC 4724).
    restart_s: int = 120

    def open(self) -> Open:
        """The OPEN that it sends."""
        restart = struct.pack("!H", _RESTARTED | self.restart_s)
        return Open(
            self.as_number,
            self.hold_s,
            self.router_id,
            (
                Capability(MULTIPROTOCOL, IPV4_UNICAST),
                Capability(ROUTE_REFRESH, b""),
                Capability(GRACEFUL_RESTART, restart + _FAMILY + _FORWARDS),
                Capability(LONG_AS_NUMBERS, self.as_number.to_bytes(4, "big")),
            ),
        )

    def check(self, peer: Open) -> None:
        """Accept what the other side opened with.

        Raises:
            MalformedError: it is another one, or too old.
        """
        if peer.as_number != self.peer_as:
            why = f"it is of AS {peer.as_number}, not {self.peer_as}"
            raise MalformedError(why, OPEN_ERROR, BAD_PEER_AS)
        if all(one.code != LONG_AS_NUMBERS for one in peer.capabilities):
            wanted = bytes((LONG_AS_NUMBERS, 4)) + self.as_number.to_bytes(4, "big")
            raise MalformedError("it has 2-octet AS numbers", OPEN_ERROR, BAD_CAPABILITY, wanted)


# As the capability of RFC 4724 has it: without the octet between.
_FAMILY: Final = IPV4_UNICAST[:2] + IPV4_UNICAST[3:]


class Session:
    """An established session; made by `established`."""

    def __init__(self, stream: "Stream", peer: Open, hold_s: int) -> None:
        self.peer = peer
        self._stream = stream
        # 0: neither side sends keepalives.
        self._hold_s = hold_s or None

    async def received(self) -> AsyncIterator[Update | RouteRefresh]:
        """The messages of the other side, until the session ends.

        Raises:
            SessionEndedError: it has ended.
        """
        while True:
            try:
                message = await self._stream.receive(self._hold_s)
            except MalformedError as error:
                await self.end(Notification(error.code, error.subcode, error.data))
                raise SessionEndedError(f"it was told: {error}") from error
            match message:
                case Update() | RouteRefresh():
                    yield message
                case Open():
                    await self.end(Notification(SESSION_ERROR, 0))
                    raise SessionEndedError("it opened twice")
                case Notification(code, subcode):
                    raise SessionEndedError(f"its reason was {code}/{subcode}")
                case Keepalive():
                    pass

    async def send(self, message: Update | RouteRefresh) -> None:
        """Send it; waits while the other side reads too slowly."""
        await self._stream.send(message)

    async def keep_alive(self) -> None:
        """Say in time that this side is there; runs beside the rest until the session ends."""
        while self._hold_s is not None:
            await asyncio.sleep(self._hold_s / 3)
            await self._stream.send(Keepalive())
        await asyncio.Event().wait()

    async def end(self, reason: Notification) -> None:
        """Say why, and end it: the other side withdraws all routes."""
        with contextlib.suppress(SessionEndedError):
            await self._stream.send(reason)


class Stream:
    """Messages over one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def receive(self, within_s: float | None) -> Message:
        """The next message.

        Raises:
            MalformedError: what came is none, or nothing came in time.
            SessionEndedError: the connection is gone.
        """
        try:
            async with asyncio.timeout(within_s):
                head = await self._reader.readexactly(HEADER_BYTES)
                return parse(head + await self._reader.readexactly(size_of(head) - HEADER_BYTES))
        except TimeoutError as error:
            raise MalformedError("it was silent for too long", HOLD_TIMER_EXPIRED, 0) from error
        except (asyncio.IncompleteReadError, OSError) as error:
            raise SessionEndedError("the connection is gone") from error

    async def expect(self, kind: type[Expected]) -> Expected:
        """The next message, while the session is being opened.

        Raises:
            MalformedError: it is of another kind, or none came in time.
            SessionEndedError: the other side refuses, or the connection is gone.
        """
        message = await self.receive(OPEN_WITHIN_S)
        if isinstance(message, Notification):
            raise SessionEndedError(f"it refused: {message.code}/{message.subcode}")
        if not isinstance(message, kind):
            raise MalformedError(f"no {kind.__name__} when one was due", SESSION_ERROR, 0)
        return message

    async def send(self, message: Message) -> None:
        """Send it.

        Raises:
            SessionEndedError: the connection is gone.
        """
        try:
            self._writer.write(encode(message))
            await self._writer.drain()
        except OSError as error:
            raise SessionEndedError("the connection is gone") from error


@contextlib.asynccontextmanager
async def established(
    speaker: Speaker, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> AsyncIterator[Session]:
    """The session over a connection, kept alive within the block; then the connection is closed.

    Raises:
        SessionEndedError: the other side is not who was expected, or the session has ended.
    """
    stream = Stream(reader, writer)
    try:
        session = await _opened(speaker, stream)
        keeping = asyncio.create_task(session.keep_alive())
        try:
            yield session
        finally:
            keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError, SessionEndedError):
                await keeping
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _opened(speaker: Speaker, stream: Stream) -> Session:
    try:
        await stream.send(speaker.open())
        peer = await stream.expect(Open)
        speaker.check(peer)
        await stream.send(Keepalive())
        await stream.expect(Keepalive)
    except MalformedError as error:
        with contextlib.suppress(SessionEndedError):
            await stream.send(Notification(error.code, error.subcode, error.data))
        raise SessionEndedError(f"it was told: {error}") from error
    return Session(stream, peer, min(speaker.hold_s, peer.hold_s))
