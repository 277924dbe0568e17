"""The channels of a replica's group, for a program of asyncio; the names of `haptera.app.channels`.

async with AsyncChannels.of_environment() as channels:
    start = await channels.start()
    async for event in channels:
        ...
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from haptera.app.channel_events import ChannelsError, ChannelStart, Event
from haptera.app.channel_talk import ChannelTalk, FrameBuffer
from haptera.app.channels import AGAIN_S, READ_BYTES_MAX, connected

Link = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AsyncChannels:
    """The channels of a group, for one process of one replica.

    One task iterates; all tasks of its loop may emit.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._talk = ChannelTalk()
        self._link: Link | None = None
        self._frames = FrameBuffer()
        self._connecting = asyncio.Lock()

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The channels of the replica that haptera started this process as.

        Raises:
            KeyError: it has none.
        """
        return cls(Path(environment["HAPTERA_CHANNELS"]))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._link is not None:
            self._break(self._link[1])

    async def start(self) -> ChannelStart:
        """The place to begin at, with the state of a sibling; waits until that is known.

        Raises:
            ChannelsError: the group's policy is to fail, or it was called before.
        """
        if self._talk.start is not None:
            raise ChannelsError("start() is called once")
        while self._talk.start is None:
            await self._next()
        return self._talk.start

    async def offer_state(self) -> None:
        """Say that this program answers `StateWanted`."""
        await self._send(self._talk.offered())

    async def emit(self, data: bytes) -> None:
        """Say something; waits where too much is not stored yet."""
        await self._send(self._talk.emitted(data))

    async def supply(self, state: bytes) -> None:
        """Give a sibling the state after all events so far."""
        await self._send(*self._talk.supplied(state))

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            if (event := await self._next()) is not None:
                yield event

    async def next(self, within_s: float | None = None) -> Event | None:
        """The next event, or None if none comes within the time."""
        try:
            async with asyncio.timeout(within_s):
                while (event := await self._next()) is None:
                    pass
                return event
        except TimeoutError:
            return None

    async def _next(self) -> Event | None:
        while True:
            link = reader, writer = await self._connected()
            try:
                while (one := self._frames.frame()) is not None:
                    if (event := self._talk.received(*one)) is not None:
                        return event
                    if one[0]["op"] == "start":
                        return None
                if not (data := await reader.read(READ_BYTES_MAX)):
                    raise ConnectionError
                if link == self._link:
                    self._frames.feed(data)
            except OSError:
                self._break(writer)

    async def _send(self, *said: bytes) -> None:
        """Write it at once, or have it written with the next connection; then wait for room."""
        link = self._link
        if link is not None:
            link[1].writelines(said)
        _, writer = await self._connected()
        try:
            await writer.drain()
        except OSError:
            self._break(writer)

    async def _connected(self) -> Link:
        """The connection, made anew where there is none."""
        async with self._connecting:
            while self._link is None:
                try:
                    self._link = await asyncio.open_unix_connection(sock=connected(self._path))
                    self._link[1].writelines(self._talk.opening())
                except OSError:
                    await asyncio.sleep(AGAIN_S)
            return self._link

    def _break(self, writer: asyncio.StreamWriter) -> None:
        """Forget a connection, and what came of it that the program was not given."""
        writer.close()
        if self._link is not None and self._link[1] is writer:
            self._link, self._frames = None, FrameBuffer()
