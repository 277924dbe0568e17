"""The shim of a router that we tell our routes: one of the group's replicas has the session.

Each replica knows all best routes, so whoever leads next tells the whole table at once. The router
keeps what it was told while nobody has the session (RFC 4724).
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Final

from bgp.attributes import Attributes
from bgp.messages import END_OF_TABLE, Prefix, Update, encode, packed, parse, size_of
from bgp.session import Session, SessionEndedError
from connecting import REFLECTOR, RETRY_S, connected
from record import Record
from reflect import words_of

from haptera.app import GroupReplica
from haptera.app.channels import ChannelMessage, Hole, StateWanted
from haptera.app.channels_async import AsyncChannels

# Under which epoch this replica leads now; None: it does not.
Epoch = Callable[[], int | None]
LOOK_EVERY_S: Final = 0.05


class Told:
    """The best routes, and of those what the router has not been told in this session."""

    def __init__(self) -> None:
        self.best: dict[Prefix, Attributes] = {}
        self._untold: dict[Prefix, Attributes | None] = {}
        self._more = asyncio.Event()

    def apply(self, octets: bytes) -> None:
        """Take messages of the reflector in."""
        at = 0
        while at < len(octets):
            end = at + size_of(octets[at : at + 19])
            update = parse(octets[at:end])
            assert isinstance(update, Update)
            self._apply(update)
            at = end
        self._more.set()

    def _apply(self, update: Update) -> None:
        for prefix in update.withdrawn:
            self.best.pop(prefix, None)
            self._untold[prefix] = None
        for prefix in update.announced:
            self.best[prefix] = self._untold[prefix] = update.attributes

    def dump(self) -> bytes:
        """The best routes, for `apply` of another one."""
        return b"".join(map(encode, packed(self.best.items())))

    async def tell(self, session: Session) -> None:
        """Tell the whole table, then each change, for as long as the session lasts."""
        self._untold = dict(self.best)
        await self._tell_rest(session)
        await session.send(END_OF_TABLE)
        while True:
            await self._more.wait()
            await self._tell_rest(session)

    async def _tell_rest(self, session: Session) -> None:
        self._more.clear()
        rest, self._untold = self._untold, {}
        for update in packed(rest.items()):
            await session.send(update)


async def main(records: str, address: str, ours: str) -> None:
    """Announce for ever."""
    replica, told = GroupReplica.of_environment(), Told()
    record = Record.of_replica(records, replica)
    async with AsyncChannels.of_environment() as channels, asyncio.TaskGroup() as tasks:
        tasks.create_task(follow(channels, told, record))
        while True:
            await announce(told, replica.epoch, address, ours)


async def follow(channels: AsyncChannels, told: Told, record: Record) -> None:
    """Apply all that the reflector says."""
    start = await channels.start()
    told.apply(start.state or b"")
    await channels.offer_state()
    record.note("start", start.number)
    async for event in channels:
        match event:
            case ChannelMessage():
                record.note(*words_of(event))
                told.apply(event.data)
            case StateWanted():
                await channels.supply(told.dump())
            case Hole():
                raise SystemExit(f"{event}: begin again from the state of a sibling")


async def announce(told: Told, leads: Epoch, address: str, ours: str) -> None:
    """Have the session for as long as this replica leads; the router keeps the routes after it."""
    while leads() is None:  # noqa: ASYNC110  the lease is a file
        await asyncio.sleep(LOOK_EVERY_S)
    try:
        async with connected(REFLECTOR, address, ours) as session, asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(told.tell(session))
            reading = tasks.create_task(_read(session))
            while leads() is not None:  # noqa: ASYNC110
                await asyncio.sleep(LOOK_EVERY_S)
            telling.cancel()
            reading.cancel()
    except* (SessionEndedError, OSError) as ended:
        print(ended.exceptions, flush=True)  # noqa: T201  its log
        await asyncio.sleep(RETRY_S)


async def _read(session: Session) -> None:
    async for _ in session.received():
        pass


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
