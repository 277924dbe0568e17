"""The shim of a router that feeds us: each message of its session is a message of this group.

A shim that is restarted reads the whole table anew: its OPEN says so to the reflectors.
"""

import asyncio
import sys

from bgp.messages import Update, encode
from bgp.session import Session, SessionEndedError
from connecting import REFLECTOR, RETRY_S, connected
from record import Record, digest

from haptera.app import GroupReplica
from haptera.app.channels_async import AsyncChannels


async def main(records: str, address: str, ours: str) -> None:
    """Feed for ever."""
    record = Record.of_replica(records, GroupReplica.of_environment())
    async with AsyncChannels.of_environment() as channels:
        await feed(channels, record, address, ours)


async def feed(channels: AsyncChannels, record: Record, address: str, ours: str) -> None:
    """Feed from one session after another."""
    await channels.start()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_listen(channels))
        while True:
            try:
                async with connected(REFLECTOR, address, ours) as session:
                    await _pass_on(session, channels, record)
            except (SessionEndedError, OSError) as ended:
                print(ended, flush=True)  # noqa: T201  its log
            await asyncio.sleep(RETRY_S)


async def _pass_on(session: Session, channels: AsyncChannels, record: Record) -> None:
    """Feed until the session ends: while a channel is full, the router waits, too."""
    await _emit(channels, record, encode(session.peer))
    async for message in session.received():
        if isinstance(message, Update):
            await _emit(channels, record, encode(message))


async def _listen(channels: AsyncChannels) -> None:
    """Read what channels say of what was emitted; nothing is fed to this group itself."""
    async for _ in channels:
        pass


async def _emit(channels: AsyncChannels, record: Record, octets: bytes) -> None:
    record.note(digest(octets))
    await channels.emit(octets)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
