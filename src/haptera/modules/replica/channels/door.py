"""The Unix socket in a replica's folder at which its program reaches its channels."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final

from haptera.app.channel_talk import HEADER_BYTES_MAX
from haptera.modules.replica.channels.carrier import CarrierError
from haptera.modules.replica.sockets import bound

CHANNELS_SOCKET: Final = "channels.sock"
# After a carrier that could not be reached, the program is let in again so late.
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
        self._session: asyncio.Task[None] | None = None

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.end()
        self._session = asyncio.create_task(self._serving(reader, writer))
        await asyncio.wait([self._session])

    async def _serving(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except* (OSError, CarrierError, ValueError, TypeError, KeyError):
            # Either side has gone, or the program says what is no frame: it connects again.
            await asyncio.sleep(AGAIN_S)
        finally:
            writer.close()

    async def end(self) -> None:
        """Let a new program in only when the one before is out."""
        session, self._session = self._session, None
        while session is not None and not session.done():
            session.cancel()  # again, where what it awaits has swallowed that
            await asyncio.wait([session], timeout=AGAIN_S)
