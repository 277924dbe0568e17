"""All programs of the demo between two real routers, on channels in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from announce import Told, announce, follow
from audit import WrongError, audit, read
from bgp.messages import Keepalive, Open, Prefix, Update, encode
from connecting import REFLECTOR
from feed import feed
from record import Record
from reflect import reflect
from routes import Table

from haptera.app import GroupReplica
from haptera.app.channels_async import AsyncChannels
from haptera.testing.channels import ChannelBench
from tests.lab.rig import until
from tests.router.bird import PORT, Bird, needs_bird, running_bird
from tests.router.test_routes import EAST, route

Program = Callable[[AsyncChannels, Record], Coroutine[Any, Any, object]]
NETWORKS = [f"10.{number}.0.0/16" for number in range(40)]


class Programs:
    """Programs of replicas on a bench, each a task that can be killed."""

    def __init__(self, bench: ChannelBench, folder: Path) -> None:
        self.bench, self.records = bench, folder
        self._tasks: dict[tuple[str, int], asyncio.Task[object]] = {}

    async def start(self, group: str, rank: int, program: Program) -> None:
        """Begin the program of a replica, or kill it and begin it again."""
        await self.kill(group, rank)
        environment = await self.bench.replica(group, rank)
        leases = {"HAPTERA_LEASE": "none", "HAPTERA_LEASE_TIME": "none"}
        replica = GroupReplica.of_environment(environment | leases)
        record = Record.of_replica(str(self.records), replica)

        async def run() -> object:
            async with AsyncChannels.of_environment(environment) as channels:
                return await program(channels, record)

        self._tasks[group, rank] = asyncio.create_task(run())

    async def kill(self, group: str, rank: int) -> None:
        if (task := self._tasks.pop((group, rank), None)) is not None:
            task.cancel()
            await asyncio.wait([task])

    async def end(self) -> None:
        for group, rank in list(self._tasks):
            await self.kill(group, rank)


@asynccontextmanager
async def programs(place: Path) -> AsyncIterator[Programs]:
    async with ChannelBench(place / "bench") as bench:
        bench.group("feed", leader=False)
        bench.group("reflector", hears=("feed",))
        bench.group("out", hears=("reflector",))
        running = Programs(bench, place / "records")
        try:
            yield running
        finally:
            await running.end()


async def reflecting(channels: AsyncChannels, record: Record) -> None:
    await reflect(channels, record, Table(REFLECTOR.router_id))


def feeding(bird: Bird) -> Program:
    return lambda channels, record: feed(channels, record, f"{bird.address}:{PORT}", bird.ours)


def announcing(bird: Bird, leads: Callable[[], int | None]) -> Program:
    async def program(channels: AsyncChannels, record: Record) -> None:
        told = Told()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(follow(channels, told, record))
            while True:
                await announce(told, leads, f"{bird.address}:{PORT}", bird.ours)

    return program


def holds(records: Path) -> bool:
    """True once all have come to the end, and nothing was lost, doubled or altered."""
    with suppress(WrongError):
        return bool(audit(read(records)))
    return False


@pytest.mark.net
@pytest.mark.slow
@needs_bird
async def test_whatever_is_killed_the_table_outside_is_the_feeder_s(
    tmp_path: Path,
) -> None:
    with (
        running_bird(tmp_path, NETWORKS) as feeder,
        running_bird(tmp_path, number=2) as outside,
    ):
        async with programs(tmp_path) as running:
            leading = [0]
            outs = [
                announcing(outside, lambda rank=rank: 1 if leading[0] == rank else None)
                for rank in (0, 1)
            ]
            for rank in (0, 1):
                await running.start("out", rank, outs[rank])
            for rank in (0, 1, 2):
                await running.start("reflector", rank, reflecting)
            running.bench.lead("reflector", 0)
            running.bench.lead("out", 0)
            await running.start("feed", 0, feeding(feeder))
            await until(lambda: outside.networks() == set(NETWORKS))

            await running.start("reflector", 1, reflecting)
            feeder.configure(NETWORKS[10:])
            await until(lambda: outside.networks() == set(NETWORKS[10:]))

            await running.kill("reflector", 0)
            feeder.configure(NETWORKS[20:])
            running.bench.lead("reflector", 1)
            await until(lambda: outside.networks() == set(NETWORKS[20:]))
            await running.start("reflector", 0, reflecting)

            await running.kill("feed", 0)
            feeder.configure(NETWORKS[:30])
            await running.start("feed", 0, feeding(feeder))
            await until(lambda: outside.networks() == set(NETWORKS[:30]))

            await running.kill("out", 0)
            feeder.configure(NETWORKS[:10])
            running.bench.lead("out", 1)
            leading[0] = 1
            await until(lambda: outside.networks() == set(NETWORKS[:10]))
            await running.start("out", 0, outs[0])

            for router in (outside, feeder):
                router.ask("restart", "shim")
                await until(lambda: outside.networks() == set(NETWORKS[:10]))

            feeder.configure(NETWORKS)
            await until(lambda: outside.networks() == set(NETWORKS))
            await until(lambda: holds(running.records))


@pytest.mark.net
async def test_a_replica_that_begins_later_says_what_its_sibling_would(tmp_path: Path) -> None:
    async with programs(tmp_path) as running:
        await running.start("reflector", 0, reflecting)
        running.bench.lead("reflector", 0)
        networks = [Prefix.of(one) for one in NETWORKS]
        messages: list[Open | Update] = [EAST, Update((), route(), tuple(networks))]
        messages += [Update((one,)) for one in networks[:5]]
        for one in messages:
            await running.bench.put("reflector", encode(one))
        for strange in (b"", b"no message", encode(Keepalive())):
            await running.bench.put("reflector", strange)
        before = await running.bench.outputs("reflector", 6)

        await running.start("reflector", 1, reflecting)
        record = tmp_path / "records" / "reflector.1.1.1"
        await until(lambda: "\nstart 10\n" in record.read_text())
        await running.bench.put("reflector", encode(Update((networks[5],))))
        await running.bench.outputs("reflector", 7)
        await running.kill("reflector", 0)
        running.bench.lead("reflector", 1)
        await running.bench.put("reflector", encode(Update((networks[0], networks[6]))))
        outputs = await running.bench.outputs("reflector", 8)

    assert outputs[:6] == before
    # The first of the two had been withdrawn before.
    assert [one.data for one in outputs[6:]] == [
        encode(Update((networks[5],))),
        encode(Update((networks[6],))),
    ]
