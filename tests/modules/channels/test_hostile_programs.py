"""A program that says on its channels whatever it likes: what others hear of it is sound."""

import asyncio
import contextlib
import hashlib
import json
import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from haptera.app.channel_talk import frame
from haptera.modules.replica.channels import door
from haptera.modules.replica.channels.session import ChannelPlan, ChannelSession
from haptera.modules.replica.sockets import bound
from haptera.testing.channels import ChannelBench, MemoryCarrier

pytestmark = pytest.mark.net

HELLO = {"op": "hello", "number": 2, "heard": {}}
EMIT = {"op": "emit", "number": 2, "nth": 1}
STATE = b"state"
PIECE = frame({"op": "piece"}, STATE)
SUPPLIED = {
    "op": "supplied",
    "number": 2,
    "heard": {},
    "digest": hashlib.sha256(STATE).hexdigest(),
    "bytes": len(STATE),
}
# Numbers that nobody was given, or that are none.
NUMBERS: tuple[Any, ...] = (
    3,
    2**62,
    2**63,
    10**30,
    -1,
    1.5,
    True,
    None,
    "2",
    "2\r\nNats-Rollup: all",
    [2],
    {},
)
HEARD: tuple[Any, ...] = ([], {"feed": -1}, {"feed": "7"}, {"feed": None}, 7, "feed", None)
LINES = (
    b"\n",
    b"[" * 16_000 + b"\n",
    b'{"op": "emit", "x": ' + b"[" * 16_000 + b"\n",
    b"x" * 20_000 + b"\n",
    b'{"op": "emit", "number": 1e999, "nth": 1}\n',
    b'{"op": "emit", "number": NaN, "nth": 1}\n',
    b'{"op": "emit", "number": 1, "nth": 1, "size": -1}\n',
    b'{"op": "emit", "number": 1, "nth": 1, "size": 524289}\n',
    b'{"op": "emit"}\n',
    frame(HELLO),
)
BAD_FRAMES = (
    *LINES,
    *(frame({**EMIT, "number": one}, b"bad") for one in NUMBERS),
    *(frame({**EMIT, "nth": one}, b"bad") for one in (0, *NUMBERS[2:])),
    *(PIECE + frame({**SUPPLIED, "number": one}) for one in NUMBERS),
    *(PIECE + frame({**SUPPLIED, "heard": one}) for one in HEARD),
    *(PIECE + frame({**SUPPLIED, "digest": one}) for one in ("", "0" * 64, 7, None)),
    *(PIECE + frame({**SUPPLIED, "bytes": one}) for one in (4, 6, -1, 2**70, "5")),
    PIECE + PIECE + frame(SUPPLIED),
    frame(SUPPLIED),
)
BAD_HELLOS = (
    *LINES[:-1],
    *(frame({**HELLO, "number": one}) for one in NUMBERS if one is not None),
    *(frame({**HELLO, "heard": one}) for one in HEARD if one != []),
    frame({"op": "hello", "have": -1}),
    frame({"op": "hello", "blob": 7}),
    frame(EMIT, b"bad"),
)
Trial = Callable[[ChannelBench, Path], Awaitable[None]]


def tried(tmp_path: Path, trial: Trial) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), ChannelBench(tmp_path) as bench:
            bench.group("ledger")
            bench.lead("ledger", 0)
            for data in (b"1", b"2"):
                await bench.put("ledger", data)
            told = await bench.replica("ledger", 0)
            await trial(bench, Path(told["HAPTERA_CHANNELS"]))

    asyncio.run(run())


@asynccontextmanager
async def called(path: Path, said: bytes) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        writer.write(said)
        yield reader
    finally:
        writer.close()


async def answered(path: Path, said: bytes) -> list[dict[str, Any]]:
    """All that a program is told until its connection is ended, but messages."""
    async with called(path, said) as reader:
        lines = (await reader.read()).splitlines()
    return [json.loads(one) for one in lines if b'"op": "message"' not in one and one[:1] == b"{"]


@pytest.mark.parametrize("said", BAD_FRAMES, ids=str)
def test_a_bad_frame_ends_the_talk_and_nothing_of_it_is_stored(tmp_path: Path, said: bytes) -> None:
    async def trial(bench: ChannelBench, path: Path) -> None:
        await answered(path, frame(HELLO) + said)
        held = bench.carrier.of("ledger")
        assert (held.said, held.state) == ([], None)
        async with called(path, frame(HELLO) + frame(EMIT, b"good")):
            stored = await bench.outputs("ledger", 1)
        assert [one.data for one in stored] == [b"good"]

    tried(tmp_path, trial)


@pytest.mark.parametrize("said", BAD_HELLOS)
def test_who_begins_by_a_bad_frame_is_sent_away(tmp_path: Path, said: bytes) -> None:
    async def trial(bench: ChannelBench, path: Path) -> None:
        told = await answered(path, said)
        assert {one["op"] for one in told} <= {"failed"}
        async with called(path, frame(HELLO) + frame(EMIT, b"good")):
            await bench.outputs("ledger", 1)

    tried(tmp_path, trial)


def test_a_frame_of_a_later_version_is_left_out(tmp_path: Path) -> None:
    async def trial(bench: ChannelBench, path: Path) -> None:
        later = frame({"op": "later", "number": "x"}) + frame({"op": [7]})
        async with called(path, frame(HELLO) + later + frame(EMIT | {"more": [1]}, b"good")):
            await bench.outputs("ledger", 1)

    tried(tmp_path, trial)


def test_who_asks_and_does_not_read_takes_no_memory(tmp_path: Path) -> None:
    """All that it says is stored already, so each frame is answered."""

    async def run() -> int:
        carrier, writers = MemoryCarrier(), list[asyncio.StreamWriter]()
        carrier.put("ledger", b"1")

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writers.append(writer)
            plan = ChannelPlan("ledger", 0, 1, 1)
            await ChannelSession(plan, carrier, lambda: 1, reader, writer, lambda: None).serve()

        async with asyncio.timeout(60), door.channels_door(tmp_path, serve) as path:
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(frame({**HELLO, "number": 1}) + frame({**EMIT, "number": 1}, b""))
            while b"confirmed" not in await reader.readline():
                pass
            writer.transport.pause_reading()
            again = frame({**EMIT, "number": 1}, b"") * 1_000
            for _ in range(100):
                writer.write(again)
                await writer.drain()
            size = writers[0].transport.get_write_buffer_size()
            writer.close()
            return size

    assert asyncio.run(run()) < 1 << 17


def test_of_many_that_call_at_once_one_is_served(tmp_path: Path) -> None:
    async def run() -> tuple[int, int]:
        served, most = 0, 0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal served, most
            served += 1
            most = max(most, served)
            try:
                writer.write(b"in\n")
                with contextlib.suppress(asyncio.CancelledError):  # once, as libraries do
                    await reader.read()
                await reader.read()
            finally:
                served -= 1

        async with asyncio.timeout(60):
            async with door.channels_door(tmp_path, serve) as path:
                links = [await asyncio.open_unix_connection(str(path)) for _ in range(64)]
                assert await links[-1][0].readline() == b"in\n"
                for _, writer in links[:-1]:
                    writer.close()
                assert served == 1
            for _, writer in links:
                writer.close()
        return most, served

    assert asyncio.run(run()) == (1, 0)


def test_a_door_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """By a chmod of its name afterwards, a program could have any file of the node changed."""
    before = os.umask(0)
    try:
        with contextlib.closing(bound(tmp_path, "door.sock")):
            assert stat.S_IMODE((tmp_path / "door.sock").stat().st_mode) == 0o600
    finally:
        os.umask(before)
