"""Programs on their channels, over real sockets and a carrier in memory."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from haptera.app.channels import (
    MESSAGE_BYTES_MAX,
    ChannelMessage,
    Channels,
    ChannelsError,
    ChannelStart,
    Hole,
    StateWanted,
)
from haptera.app.channels_async import AsyncChannels
from haptera.kinds.group import Recover
from haptera.testing.channels import ChannelBench

pytestmark = pytest.mark.net

Trial = Callable[[ChannelBench], Awaitable[None]]


def tried(tmp_path: Path, trial: Trial, **group: object) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), ChannelBench(tmp_path) as bench:
            bench.group("ledger", **group)
            await trial(bench)

    asyncio.run(run())


@asynccontextmanager
async def program(
    bench: ChannelBench, rank: int, group: str = "ledger"
) -> AsyncIterator[AsyncChannels]:
    async with AsyncChannels.of_environment(await bench.replica(group, rank)) as channels:
        yield channels


async def echo(channels: AsyncChannels, three: asyncio.Event | None = None) -> None:
    """A replica that says what it hears, and counts; its state is the count."""
    start = await channels.start()
    count = int(start.state or b"0")
    await channels.offer_state()
    async for event in channels:
        match event:
            case ChannelMessage(data=data):
                count += 1
                await channels.emit(b"%s %d" % (data, count))
                if count == 3 and three is not None:
                    three.set()
            case StateWanted():
                await channels.supply(b"%d" % count)


def test_each_output_leaves_once_and_in_order_over_changes_of_leader(tmp_path: Path) -> None:
    async def trial(bench: ChannelBench) -> None:
        async with program(bench, 0) as zero, program(bench, 1) as one:
            tasks = [asyncio.create_task(echo(channels)) for channels in (zero, one)]
            for number in range(300):
                await bench.put("ledger", b"%d" % number)
                if number % 50 == 0:
                    bench.lead("ledger", number // 50 % 2)
                    await bench.outputs("ledger", number // 2)
            said = await bench.outputs("ledger", 300)
            for task in tasks:
                task.cancel()

        assert [one.data for one in said] == [b"%d %d" % (n, n + 1) for n in range(300)]
        epochs = [one.epoch for one in said]
        assert epochs == sorted(epochs)
        assert len(set(epochs)) > 1

    tried(tmp_path, trial)


async def mended(channels: AsyncChannels) -> None:
    """Another version of `echo`: it says something else of one message."""
    await channels.start()
    count = 0
    async for event in channels:
        match event:
            case ChannelMessage(data=data):
                count += 1
                await channels.emit(b"mended" if data == b"7" else b"%s %d" % (data, count))


def test_a_trial_is_silent_and_compared_then_leads_and_leads_no_more(tmp_path: Path) -> None:
    async def trial(bench: ChannelBench) -> None:
        compared = bench.trial("ledger", 64)
        async with program(bench, 0) as zero, program(bench, 64) as other:
            tasks = [asyncio.create_task(echo(zero)), asyncio.create_task(mended(other))]
            bench.lead("ledger", 0)
            number, epochs = 0, []
            for epoch, leads in enumerate((0, 64, 0), 1):
                if epoch > 1:
                    bench.lead("ledger", leads)
                while epochs.count(epoch) < 20:  # who led may say some more
                    await bench.put("ledger", b"%d" % number)
                    number += 1
                    said = await bench.outputs("ledger", number)
                    epochs = [one.epoch for one in said]
            for task in tasks:
                task.cancel()

        # It said nothing while it was only compared; each output left once, whoever led.
        assert [one.data for one in said] == [b"%d %d" % (n, n + 1) for n in range(number)]
        assert epochs == sorted(epochs)
        assert compared.equal > 0
        assert [(one.at, one.trial, one.leader) for one in compared.kept] == [
            ("8.1", b"mended", b"7 8")
        ]

    tried(tmp_path, trial)


def test_a_broken_connection_loses_and_doubles_nothing(tmp_path: Path) -> None:
    async def trial(bench: ChannelBench) -> None:
        async with program(bench, 0) as zero:
            bench.lead("ledger", 0)
            task = asyncio.create_task(echo(zero))
            for number in range(200):
                await bench.put("ledger", b"%d" % number)
                if number % 20 == 0:
                    await bench.outputs("ledger", number // 2)
                    await bench.cut("ledger", 0)
            said = await bench.outputs("ledger", 200)
            task.cancel()

        assert [one.data for one in said] == [b"%d %d" % (n, n + 1) for n in range(200)]

    tried(tmp_path, trial)


def test_a_new_sibling_gets_the_leader_s_state_and_all_messages_after_it(tmp_path: Path) -> None:
    async def trial(bench: ChannelBench) -> None:
        async with program(bench, 0) as zero:
            bench.lead("ledger", 0)
            task = asyncio.create_task(echo(zero))
            for number in range(100):
                await bench.put("ledger", b"%d" % number)
            await bench.outputs("ledger", 100)
            bench.carrier.forget("ledger", before=90)
            async with program(bench, 1) as one:
                start = await one.start()
                await bench.put("ledger", b"more")

                assert start == ChannelStart(b"100", 100)
                assert await one.next() == ChannelMessage(101, "", 0, 0, 0, b"more")
            task.cancel()

    tried(tmp_path, trial)


def test_who_begins_with_a_state_also_says_what_its_supplier_could_not(tmp_path: Path) -> None:
    async def trial(bench: ChannelBench) -> None:
        async with program(bench, 0) as zero:
            for number in range(3):
                await bench.put("ledger", b"%d" % number)
            given = asyncio.Event()
            task = asyncio.create_task(echo(zero, given))
            await given.wait()
            async with program(bench, 1) as one:
                assert await one.start() == ChannelStart(b"3", 3)
                task.cancel()
                bench.lead("ledger", 1)  # and rank 0 never led
                said = await bench.outputs("ledger", 3)

        assert [one.data for one in said] == [b"0 1", b"1 2", b"2 3"]

    tried(tmp_path, trial)


def test_without_a_supplier_the_policy_is_heeded(tmp_path: Path) -> None:
    async def trial(bench: ChannelBench) -> None:
        for name, policy in (("empty", Recover.EMPTY), ("fail", Recover.FAIL)):
            bench.group(name, recover=policy)
            for data in (b"1", b"2", b"3"):
                await bench.put(name, data)
            bench.carrier.forget(name, before=3)

        async with program(bench, 0, "empty") as zero:
            assert await zero.start() == ChannelStart(None, 0)
            assert await zero.next() == Hole("", 1, 2)
            assert await zero.next() == ChannelMessage(3, "", 0, 0, 0, b"3")
        async with program(bench, 0, "fail") as zero:
            with pytest.raises(ChannelsError, match="recover=empty"):
                await zero.start()

    tried(tmp_path, trial)


def test_without_a_leader_each_replica_is_heard_with_its_incarnation(tmp_path: Path) -> None:
    async def trial(bench: ChannelBench) -> None:
        bench.group("feed", leader=False)
        async with program(bench, 0) as ledger:
            await ledger.start()
            for _ in range(2):
                async with program(bench, 3, "feed") as feed:
                    await feed.start()
                    await feed.emit(b"a")
                    await feed.emit(b"b")
                    heard = [await ledger.next(), await ledger.next()]
                assert [(one.source, one.data) for one in heard] == [
                    ("feed.3", b"a"),
                    ("feed.3", b"b"),
                ]
            assert heard[0].incarnation == 1 << 32 | 2
            assert heard[1].source_number == 4

    tried(tmp_path, trial, hears=("feed",))


def test_what_groups_say_is_heard_by_those_that_hear_them_alone(tmp_path: Path) -> None:
    async def trial(bench: ChannelBench) -> None:
        bench.group("feed", leader=False)
        bench.group("other", leader=False)
        async with program(bench, 0) as ledger:
            await ledger.start()
            for name in ("other", "feed"):
                async with program(bench, 0, name) as channels:
                    await channels.start()
                    await channels.emit(b"of %s" % name.encode())
                    await bench.outputs(name, 1)
            heard = await ledger.next()

        assert isinstance(heard, ChannelMessage)
        assert (heard.number, heard.data) == (1, b"of feed")

    tried(tmp_path, trial, hears=("feed",))


def test_a_program_that_waits_is_given_the_same(tmp_path: Path) -> None:
    def blocking(environment: dict[str, str]) -> None:
        with Channels.of_environment(environment) as channels:
            assert channels.start() == ChannelStart(None, 0)
            for event in channels:
                match event:
                    case ChannelMessage(number=number, data=data):
                        channels.emit(data)
                        if number == 50:
                            break
            with pytest.raises(ChannelsError, match="split it"):
                channels.emit(bytes(MESSAGE_BYTES_MAX + 1))
            while channels.next(within_s=0.1):
                pass

    async def trial(bench: ChannelBench) -> None:
        bench.lead("ledger", 0)
        environment = await bench.replica("ledger", 0)
        task = asyncio.create_task(asyncio.to_thread(blocking, environment))
        await asyncio.sleep(0)
        for number in range(50):
            await bench.put("ledger", b"%d" % number)
        await task

        assert [one.data for one in await bench.outputs("ledger", 50)] == [
            b"%d" % n for n in range(50)
        ]

    tried(tmp_path, trial)
