"""Channels over a real NATS server: its compare-and-set, its sources, its end and its return."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import nats
import pytest

from haptera.app.channel_events import ChannelMessage, ChannelStart, Hole, StateWanted
from haptera.app.channels_async import AsyncChannels
from haptera.modules.replica.channels.carrier import ChangedEndError, Voice, token
from haptera.modules.replica.channels.nats_carrier import NatsCarrier, nats_carrier
from haptera.modules.replica.channels.outbox import (
    EMPTY,
    NumberedOutput,
    OutputPosition,
    PublishOutput,
    StreamEnd,
)
from haptera.modules.replica.channels.session import ChannelSession
from haptera.testing.channels import ChannelBench
from tests.modules.channels.nats_rig import NatsServer, nats_server
from tests.network import NETWORK

pytestmark = [
    pytest.mark.net,
    pytest.mark.campaign,
    # The client leaves a connection open to a server that is killed while it connects.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

ADDRESS = f"{NETWORK}.43.1:4222"
WITHIN_S = 120
LEDGER = Voice("ledger")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with nats_server(ADDRESS, tmp_path / "streams") as one:
        yield one
    gc.collect()


def carried(trial: Callable[[NatsCarrier], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(WITHIN_S), nats_carrier([ADDRESS], None) as carrier:
            await carrier.prepare("ledger", ())
            await trial(carrier)

    asyncio.run(run())


def publication(number: int, epoch: int, after: int | OutputPosition) -> PublishOutput:
    return PublishOutput(NumberedOutput(at(number), b"%d" % number), epoch, after)


def at(number: int) -> OutputPosition:
    return OutputPosition(0, 0, number, 1)


def test_a_stream_stores_only_what_follows_what_was_named(server: NatsServer) -> None:
    async def trial(carrier: NatsCarrier) -> None:
        assert await carrier.end(LEDGER) == EMPTY
        assert await carrier.publish(LEDGER, publication(1, 1, after=0)) == 1
        assert await carrier.publish(LEDGER, publication(2, 1, after=at(1))) == 2
        for late in (publication(2, 2, after=1), publication(3, 2, after=at(2))):
            with pytest.raises(ChangedEndError):
                await carrier.publish(LEDGER, late)
        assert await carrier.end(LEDGER) == StreamEnd(2, 1, at(2))

    carried(trial)


def test_what_is_not_answered_is_stored_once_where_it_is_said_again(server: NatsServer) -> None:
    async def trial(carrier: NatsCarrier) -> None:
        first = publication(1, 1, after=0)
        assert [await carrier.publish(LEDGER, first) for _ in range(2)] == [1, 1]
        server.kill()

    carried(trial)
    server.start()

    async def again(carrier: NatsCarrier) -> None:
        assert await carrier.end(LEDGER) == StreamEnd(1, 1, at(1))
        assert await carrier.publish(LEDGER, publication(2, 1, after=1)) == 2

    carried(again)


def test_what_is_no_output_of_a_group_is_passed_over_by_who_looks_at_what_it_said(
    server: NatsServer,
) -> None:
    async def trial(carrier: NatsCarrier) -> None:
        client = await nats.connect(f"nats://{ADDRESS}")
        for headers in (None, {"Haptera-Position": "0.0.x.1"}, {"Haptera-Position": "7"}):
            await client.request(LEDGER.subject, b"bad", headers=headers, timeout=30)
        await client.close()
        await carrier.publish(LEDGER, publication(1, 1, after=3))
        said = carrier.said(LEDGER.group, 0)
        assert (await anext(aiter(said))).position == at(1)

    carried(trial)


class NatsBench(ChannelBench):
    """The bench, with the server as its carrier."""

    def _serving(self, plan):
        def epoch() -> int | None:
            rank, epoch = self._leads.get(plan.group, (-1, 0))
            return epoch if rank == plan.rank else None

        async def serve(reader, writer) -> None:
            async with nats_carrier([ADDRESS], None) as carrier:
                await ChannelSession(plan, carrier, epoch, reader, writer, lambda: None).serve()

        return serve


async def put(group: str, messages: list[bytes]) -> None:
    async with nats_carrier([ADDRESS], None) as carrier:
        await carrier.prepare(group, ())
    client = await nats.connect(f"nats://{ADDRESS}")
    for one in messages:
        await client.request(f"in.{token(group)}", one, timeout=30)
    await client.close()


@asynccontextmanager
async def program(bench: NatsBench, group: str, rank: int) -> AsyncIterator[AsyncChannels]:
    async with AsyncChannels.of_environment(await bench.replica(group, rank)) as channels:
        yield channels


async def echo(channels: AsyncChannels) -> None:
    start = await channels.start()
    count = int(start.state or b"0")
    await channels.offer_state()
    async for event in channels:
        match event:
            case ChannelMessage(data=data):
                count += 1
                await channels.emit(b"%s %d" % (data, count))
            case StateWanted():
                await channels.supply(b"%d" % count)


def benched(tmp_path: Path, trial: Callable[[NatsBench], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(WITHIN_S), NatsBench(tmp_path) as bench:
            bench.group("ledger")
            bench.group("reader", hears=("ledger",))
            await trial(bench)

    asyncio.run(run())


def test_receivers_hear_each_output_once_though_leaders_change_and_the_server_is_killed(
    tmp_path: Path, server: NatsServer
) -> None:
    async def trial(bench: NatsBench) -> None:
        heard = []
        async with (
            program(bench, "ledger", 0) as zero,
            program(bench, "ledger", 1) as one,
            program(bench, "reader", 0) as reader,
        ):
            tasks = [asyncio.create_task(echo(channels)) for channels in (zero, one)]
            await reader.start()
            for part in range(6):
                bench.lead("ledger", part % 2)
                if part == 3:
                    server.kill()
                    server.start()
                await put("ledger", [b"%d" % n for n in range(part * 50, part * 50 + 50)])
                while len(heard) < part * 50 + 25:  # the rest is on its way at the next change
                    heard.append(await reader.next())
            while len(heard) < 300:
                heard.append(await reader.next())
            for task in tasks:
                task.cancel()

        assert [one.data for one in heard] == [b"%d %d" % (n, n + 1) for n in range(300)]
        assert [one.source_number for one in heard] == [*range(1, 301)]
        epochs = [one.epoch for one in heard]
        assert epochs == sorted(epochs)
        assert len(set(epochs)) > 2

    benched(tmp_path, trial)


def test_a_new_sibling_gets_the_leader_s_state_through_the_carrier(
    tmp_path: Path, server: NatsServer
) -> None:
    state = bytes(range(256)) * 8_192  # of several pieces

    async def supplies(channels: AsyncChannels, offered: asyncio.Event) -> None:
        await channels.start()
        await channels.offer_state()
        offered.set()
        async for event in channels:
            if isinstance(event, StateWanted):
                await channels.supply(state)

    async def trial(bench: NatsBench) -> None:
        bench.lead("ledger", 0)
        async with program(bench, "ledger", 0) as zero, program(bench, "ledger", 1) as one:
            task = asyncio.create_task(supplies(zero, offered := asyncio.Event()))
            # A sibling that starts before would start empty.
            await offered.wait()
            await put("ledger", [b"1", b"2", b"3"])
            start = await one.start()
            while start.number < 3 and (await one.next()).number < 3:
                pass
            await put("ledger", [b"4"])
            assert (await one.next()).number == 4
            async with program(bench, "ledger", 2) as two:
                again = await two.start()
            task.cancel()

        assert again == ChannelStart(state, 4)

    benched(tmp_path, trial)


def test_a_hole_in_what_is_heard_is_told(tmp_path: Path, server: NatsServer) -> None:
    async def trial(bench: NatsBench) -> None:
        async with program(bench, "ledger", 0) as zero:
            await zero.start()
            await put("ledger", [b"%d" % n for n in range(1, 10)])
        client = await nats.connect(f"nats://{ADDRESS}")
        await client.request("$JS.API.STREAM.PURGE.in-ledger", b'{"seq": 7}')
        await client.close()
        async with program(bench, "ledger", 1) as one:
            assert await one.start() == ChannelStart(None, 0)
            assert await one.next() == Hole("", 1, 6)
            assert (await one.next()).number == 7

    benched(tmp_path, trial)


def test_what_is_no_output_of_a_group_is_a_hole_for_who_hears_it(
    tmp_path: Path, server: NatsServer
) -> None:
    async def trial(bench: NatsBench) -> None:
        async with program(bench, "reader", 0) as reader:
            await reader.start()
            client = await nats.connect(f"nats://{ADDRESS}")
            for headers in (
                None,
                {"Nats-Msg-Id": "out.ledger.7/0/0.0.x.1", "Haptera-Epoch": "0"},
                {"Nats-Msg-Id": "out.ledger.x/0/0.0.1.1", "Haptera-Epoch": "0"},
            ):
                await client.request("out.ledger.7", b"bad", headers=headers, timeout=30)
            await client.request("in.reader", b"good", timeout=30)
            await client.close()
            assert await reader.next() == Hole("", 1, 3)
            assert await reader.next() == ChannelMessage(4, "", 0, 0, 0, b"good")

    benched(tmp_path, trial)
