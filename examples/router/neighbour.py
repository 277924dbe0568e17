"""A neighbour of the feeding router: it announces many networks, then changes some for ever.

    neighbour.py ADDRESS OURS NETWORKS CHANGES_A_SECOND

Each change has a number of its own, in a large community. It changes from SIGUSR1 to SIGUSR2, says
how many changes that were, and keeps its session.
"""

import asyncio
import random  # noqa: TID251  a program of its own
import signal
import sys
from collections.abc import Iterator
from typing import Final

from bgp.attributes import (
    LARGE_COMMUNITIES,
    NEXT_HOP,
    OPTIONAL,
    ORIGIN,
    TRANSITIVE,
    Attribute,
    Attributes,
    as_path,
)
from bgp.messages import END_OF_TABLE, Prefix, Update, packed
from bgp.session import Session, Speaker
from connecting import REFLECTOR, connected

AS_NUMBER: Final = 65_010
# Of the changes, so many end a route; it begins anew once it is drawn again.
ENDS: Final = 0.1


def networks(count: int) -> list[Prefix]:
    """So many networks: 10.0.0.0/24 and those behind it."""
    first = 10 << 24
    return [Prefix((first + (i << 8)).to_bytes(4, "big"), 24) for i in range(count)]


def route(number: int) -> Attributes:
    """The route that a change of this number brings."""
    version = b"".join(one.to_bytes(4, "big") for one in (AS_NUMBER, 1, number))
    return (
        Attribute(ORIGIN, TRANSITIVE, b"\x00"),
        as_path([AS_NUMBER, 64_600 + number % 7]),
        Attribute(NEXT_HOP, TRANSITIVE, bytes((192, 0, 2, 7))),
        Attribute(LARGE_COMMUNITIES, OPTIONAL | TRANSITIVE, version),
    )


def changes(prefixes: list[Prefix], rng: random.Random) -> Iterator[Update]:
    """One change after another, of all that have a route."""
    ended: set[Prefix] = set()
    number = 0
    while True:
        number += 1
        prefix = rng.choice(prefixes)
        if prefix not in ended and rng.random() < ENDS:
            ended.add(prefix)
            yield Update((prefix,))
        else:
            ended.discard(prefix)
            yield Update((), route(number), (prefix,))


async def main(address: str, ours: str, count: int, per_s: int) -> None:
    """Announce, and change until it is told to stop."""
    busy, quiet = asyncio.Event(), asyncio.Event()
    for number, event in ((signal.SIGUSR1, busy), (signal.SIGUSR2, quiet)):
        asyncio.get_running_loop().add_signal_handler(number, event.set)
    speaker = Speaker(AS_NUMBER, bytes((192, 0, 2, 7)), REFLECTOR.as_number)
    prefixes = networks(count)
    async with connected(speaker, address, ours) as session, asyncio.TaskGroup() as tasks:
        tasks.create_task(_read(session))
        for update in packed((one, route(0)) for one in prefixes):
            await session.send(update)
        await session.send(END_OF_TABLE)
        await busy.wait()
        print(await change(session, prefixes, per_s, quiet), flush=True)  # noqa: T201


async def change(session: Session, prefixes: list[Prefix], per_s: int, quiet: asyncio.Event) -> int:
    """Send so many changes a second; how many they were, once it is to be quiet."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    for sent, update in enumerate(changes(prefixes, random.Random(43))):
        if (ahead_s := sent / per_s - (loop.time() - began)) > 0:
            await asyncio.sleep(ahead_s)
        if quiet.is_set():
            return sent
        await session.send(update)
    raise AssertionError("changes never end")


async def _read(session: Session) -> None:
    async for _ in session.received():
        pass


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
