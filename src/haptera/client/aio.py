"""The client for programs on asyncio: many calls at a time."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing, suppress
from functools import partial
from pathlib import Path
from typing import Final, Self, TypeVar, assert_never

from haptera.client.access import Access
from haptera.client.address import Address, UnixSocket, parse_address
from haptera.client.call import ApiAnswer, ApiCall
from haptera.client.protocol import (
    KEPT_MAX,
    Arrived,
    Broken,
    Open,
    Operation,
    Pause,
    Receive,
    Send,
    Waiting,
    asking,
    following,
    reading,
)
from haptera.client.trust import context_of
from haptera.rest.schemas import Event
from haptera.rest.unix_path import short

_RECEIVED_BYTES_MAX: Final = 1 << 18

Shape = TypeVar("Shape")
Outcome = TypeVar("Outcome")


class AsyncClient:
    """Asks the API where, and as whom, `access` says; many calls may be under way.

    `waiting` is called where an answer takes long.
    """

    def __init__(self, access: Access, waiting: Callable[[], None] | None = None) -> None:
        self.access = access
        self._waiting = waiting
        self._address = parse_address(access.url)
        self._kept: list[_Wire] = []

    async def ask(self, call: ApiCall[Shape]) -> Shape:
        """Make a call; its answer.

        Raises:
            UnreachableError: nobody answers there.
            RefusedError: the server refuses, and says why.
        """
        return (await self.tagged(call)).value

    async def tagged(self, call: ApiCall[Shape]) -> ApiAnswer[Shape]:
        """Make a call; its answer, with the tag of its version.

        Raises:
            UnreachableError, RefusedError: as of `ask`.
        """
        kept = self._kept.pop() if call.repeatable and self._kept else None
        wire, keeps = kept or self._wire(), False
        try:
            told = _told(wire, asking(call, self.access, kept=kept is not None))
            [done] = [one async for one in told]
            keeps = done.keeps and len(self._kept) < KEPT_MAX
        finally:
            if keeps:
                self._kept.append(wire)
            else:
                wire.close()
        return done.given

    async def follow(self, call: ApiCall[Event]) -> AsyncGenerator[Arrived | Broken, None]:
        """What changes, as it does, over breaks, until nobody listens.

        Raises:
            RefusedError: the server refuses, and says why.
        """
        with closing(self._wire()) as wire:
            told: AsyncGenerator[Arrived | Broken, None]
            told = _told(wire, following(call, self.access))
            async with aclosing(told):
                async for one in told:
                    yield one

    async def lines(self, call: ApiCall[Shape]) -> AsyncGenerator[Shape, None]:
        """Make a call that is answered in lines; each as it comes. To close it hangs up.

        Raises:
            UnreachableError, RefusedError: as of `ask`; also where the answer breaks off.
        """
        with closing(self._wire()) as wire:
            async with aclosing(_told(wire, reading(call, self.access))) as told:
                async for line in told:
                    yield line.told

    def close(self) -> None:
        while self._kept:
            self._kept.pop().close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def _wire(self) -> "_Wire":
        return _Wire(self._address, self.access, self._waiting)


class _Wire:
    """One connection at a time."""

    def __init__(
        self, address: Address, access: Access, waiting: Callable[[], None] | None
    ) -> None:
        self._address = address
        self._access = access
        self._waiting = waiting
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def do(self, operation: Operation) -> bytes:
        """Do an operation; what was received, if it is that.

        Raises:
            OSError: it could not be done.
        """
        match operation:
            case Open(within_s):
                self.close()
                async with asyncio.timeout(within_s):
                    self._ends = await _connected(self._address, self._access)
            case Send(data, within_s):
                _, writer = self._open()
                writer.write(data)
                async with asyncio.timeout(within_s):
                    await writer.drain()
            case Receive(within_s):
                reader, _ = self._open()
                async with asyncio.timeout(within_s):
                    return await reader.read(_RECEIVED_BYTES_MAX)
            case Pause(for_s):
                await asyncio.sleep(for_s)
            case Waiting():
                if self._waiting is not None:
                    self._waiting()
            case _:
                assert_never(operation)
        return b""

    def close(self) -> None:
        if self._ends is not None:
            self._ends[1].close()
            self._ends = None

    def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        assert self._ends is not None, "it was opened first"
        return self._ends


async def _told(
    wire: _Wire, operations: Generator[Operation | Outcome, bytes, None]
) -> AsyncGenerator[Outcome, None]:
    """Do the operations; what comes of them, as it does."""
    resume: Callable[[], Operation | Outcome] = operations.__next__
    with suppress(StopIteration):
        while True:
            one = resume()
            resume = operations.__next__
            if not isinstance(one, Operation):
                yield one
                continue
            try:
                resume = partial(operations.send, await wire.do(one))
            except OSError as error:
                resume = partial(operations.throw, error)


async def _connected(
    address: Address, access: Access
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(address, UnixSocket):
        with short(Path(address.path)) as name:
            return await asyncio.open_unix_connection(name, limit=_RECEIVED_BYTES_MAX)
    context = context_of(access) if address.secure else None
    return await asyncio.open_connection(
        address.name, address.port, limit=_RECEIVED_BYTES_MAX, ssl=context
    )
