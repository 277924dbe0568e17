"""A replica of the route reflector: messages of routers in, changes of the best routes out."""

import asyncio
import sys
from collections.abc import Iterator
from ipaddress import IPv4Address

from bgp.attributes import MalformedError
from bgp.messages import Open, Update, encode, packed, parse
from connecting import CLUSTER_ID
from record import Record, digest
from routes import Heard, Table
from state import dump, load

from haptera.app import GroupReplica
from haptera.app.channels import ChannelMessage, Hole, StateWanted
from haptera.app.channels_async import AsyncChannels


async def main(records: str, cluster_id: str = CLUSTER_ID) -> None:
    """Reflect for ever, as this reflector."""
    record = Record.of_replica(records, GroupReplica.of_environment())
    async with AsyncChannels.of_environment() as channels:
        await reflect(channels, record, Table(IPv4Address(cluster_id).packed))


async def reflect(channels: AsyncChannels, record: Record, table: Table) -> None:
    """Apply all messages in their order; the same ones give the same outputs in any replica."""
    start = await channels.start()
    load(start.state or b"", table)
    await channels.offer_state()
    record.note("start", start.number)
    async for event in channels:
        match event:
            case ChannelMessage():
                outputs = list(changes_of(table, event))
                # Noted first: what is said is in the record of who said it.
                record.note(*words_of(event), *map(digest, outputs))
                for one in outputs:
                    await channels.emit(one)
            case StateWanted():
                await channels.supply(dump(table))
            case Hole():
                raise SystemExit(f"{event}: begin again from the state of a sibling")


def changes_of(table: Table, message: ChannelMessage) -> Iterator[bytes]:
    """The changes by a message, as messages to routers."""
    try:
        said = parse(message.data)
    except MalformedError:
        return  # All replicas leave it out alike; it would end each of them again and again.
    if isinstance(said, Open | Update):
        changes = table.apply(Heard(message.source, message.incarnation, said))
        yield from map(encode, packed(changes.items()))


def words_of(message: ChannelMessage) -> tuple[object, ...]:
    """A message in a record: its number here, and where it is from."""
    source = (message.source, message.incarnation, message.source_number)
    return (message.number, *source, message.epoch, digest(message.data))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
