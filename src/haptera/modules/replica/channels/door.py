"""The Unix socket in a replica's folder at which its program reaches its channels."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from pathlib import Path
from typing import Final

from haptera.app.channel_talk import HEADER_BYTES_MAX
from haptera.modules.replica.channels.carrier import CarrierError
from haptera.modules.replica.sockets import bound
from haptera.sdk.boundary import Boundary

CHANNELS_SOCKET: Final = "channels.sock"
# After a session that has ended, the program is let in again so late.
AGAIN_S: Final = 0.2

Serving = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def channels_door(folder: Path, serve: Serving) -> AsyncIterator[Path]:
    """Serve one program at a time, the one that came last; the socket's path."""
    door = _Door(serve)
    with contextlib.closing(bound(folder, CHANNELS_SOCKET)) as listening:
        server = await asyncio.start_unix_server(
            door.attend, sock=listening, limit=HEADER_BYTES_MAX
        )
        try:
            yield folder / CHANNELS_SOCKET
        finally:
            server.close()
            await door.end()


class _Door:
    def __init__(self, serve: Serving) -> None:
        self._serve = serve
        self._sessions: set[asyncio.Task[None]] = set()

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        before = frozenset(self._sessions)
        session = asyncio.create_task(self._serving(before, reader, writer))
        self._sessions.add(session)
        session.add_done_callback(self._sessions.discard)
        await asyncio.wait([session])

    async def _serving(
        self,
        before: Collection[asyncio.Task[None]],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        try:
            await _end(before)
            with Boundary("a program on its channels"):
                try:
                    await self._serve(reader, writer)
                except* (OSError, CarrierError):
                    pass  # either side has gone, or the program says what is no frame
            await asyncio.sleep(AGAIN_S)
        finally:
            writer.close()

    async def end(self) -> None:
        """Let out whoever is in."""
        await _end(frozenset(self._sessions))


async def _end(sessions: Collection[asyncio.Task[None]]) -> None:
    """Let a new program in only when all before it are out."""
    while left := [one for one in sessions if not one.done()]:
        for one in left:
            one.cancel()  # again, where what it awaits has swallowed that
        await asyncio.wait(left, timeout=AGAIN_S)
