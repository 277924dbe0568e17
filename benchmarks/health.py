"""What numbers cost one parent: from the socket to the disk, and how many bytes they take there.

    python -m benchmarks.health [NODES [ROUNDS]]

Each round stands for 10 s: every node sends 30 numbers, as an agent does. Both ends are in this
process; what sending costs is left out. The files are written by their thread, whose time is told
apart. The baseline is a plain table of SQLite with an index, a row for each number, in the same
run: it has no socket, no check and no downsampling. Figures are CPU time.
"""

import asyncio
import random
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time, sleep, thread_time
from uuid import UUID

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.core.state.side import Side
from haptera.daemon.samples.sample_board import SampleBoard
from haptera.kinds import KINDS
from haptera.model.changes import Stored, StoredEntity
from haptera.model.entity import node_id
from haptera.model.events import Event, Heard
from haptera.model.messages import Mark, Message
from haptera.model.parts import Context, Manifest, Sampler
from haptera.model.reading import Reading, Series
from haptera.model.samples import Measurement, SampleBatch
from haptera.runtime.network.udp import Udp
from haptera.runtime.samples.chunk_file import ChunkFile
from haptera.runtime.samples.limits import SampleLimits
from haptera.runtime.samples.sample_store import HOUR_S, STEP_S, WINDOW_S, SampleStore
from haptera.wire.seal import Agreement, SealRole, Session
from haptera.wire.updates import Codec

NODES, ROUNDS = 10_000, 12
SENSORS = 30
EVERY_S = 10
# As many as the socket's buffer has room for.
TOGETHER = 100
HOST = "127.0.0.1"
WITHIN_S = 60
# An hour and what it takes until it is downsampled.
NODES_AN_HOUR = 50
ROUNDS_AN_HOUR = (HOUR_S + 3 * WINDOW_S) // EVERY_S
BEGAN = 1_700_000_040 // WINDOW_S * WINDOW_S
HELLO = Message(1, 0, 77, Mark(1, 1, 1), Mark(0, 1, 1), words=(0x2A,))
CODEC = Codec(KINDS.values(), schema=77)
READINGS = tuple(
    Reading("node", f"{name}.s{letter}", low=0.0)
    for name in ("temp", "fan", "ecc", "power", "memory")
    for letter in "abcdef"
)


class Fleet:
    """Nodes whose sensors walk as real ones do: in the steps of their converters."""

    def __init__(self, nodes: int) -> None:
        self._chance = random.Random(7)
        self.names = [f"n{number}" for number in range(nodes)]
        self._values = [[40.0, 6_000.0, 3.0, 220.0, 64e9] for _ in range(nodes)]

    def measured(self, number: int) -> dict[str, float]:
        """The next numbers of one node."""
        drift, some = self._chance.random, self._values[number]
        some[0] += 0.5 * round(drift() * 2 - 1)
        some[1] += 60.0 * round(drift() * 2 - 1)
        some[3] += round(drift() * 6 - 3)
        some[4] += 4096.0 * round(drift() * 2000 - 1000)
        return {one.name: some[place // 6] + place % 6 for place, one in enumerate(READINGS)}


def engine_of(nodes: list[str]) -> Engine:
    sampler = Sampler("meter", "sensors", "node", READINGS)
    manifest = Manifest("meter", "1", Context.SELF, (), (), samplers=(sampler,))
    entities = [StoredEntity(node_id(name), {}, "site", {}, 1) for name in nodes]
    side = Side(Context.PARENT, None, 1, "boot", 5 * S)
    return Engine(side, Catalog(KINDS, [manifest]), Stored(1, 1, entities, [], {}), 0, S)


class Wire:
    """A parent and its nodes on loopback, and how much of what was sent has arrived."""

    def __init__(self, names: list[str], board: SampleBoard) -> None:
        self._board = board
        self._names = names
        self.parent, self.children = Udp.bind(HOST, 0), Udp.bind(HOST, 0)
        self._due = 0
        self._done = asyncio.Event()
        self.parent.start(CODEC, self._heard, lambda *_: None, sampled=self._sampled)
        self.children.start(CODEC, lambda _: None, lambda *_: None)
        for number, name in enumerate(names):
            index = len(names) + number
            agreement = Agreement(bytes(32), UUID(int=1), UUID(int=number), 1, number, index)
            above = Session(agreement, SealRole.PARENT, 1)
            self.parent.add(name, above, (HOST, self.children.port))
            below = Session(agreement, SealRole.CHILD, 2)
            self.children.add(name, below, (HOST, self.parent.port))

    async def greet(self, some: range) -> None:
        """Say hello, as agents do before they measure."""
        for number in some:
            self.children.tell(self._names[number], HELLO)
        await self._arrived(len(some))

    async def tell(self, some: range, fleet: Fleet) -> float:
        """Send the numbers of these nodes; the CPU time that it took to take them in."""
        for number in some:
            told = Measurement("node", self._names[number], 40, fleet.measured(number))
            self.children.tell_measured(self._names[number], told)
        began = thread_time()
        await self._arrived(len(some) * SENSORS)
        return thread_time() - began

    async def _arrived(self, count: int) -> None:
        self._due += count
        self._done.clear()
        async with asyncio.timeout(WITHIN_S):
            while self._due > 0:
                await self._done.wait()
                self._done.clear()

    def _heard(self, events: list[Event]) -> None:
        self._due -= sum(isinstance(one, Heard) for one in events)
        self._done.set()

    def _sampled(self, peer: str, told: list[Measurement]) -> None:
        self._board.measured(peer, told)
        self._due -= sum(len(one.values) for one in told)
        self._done.set()


async def haptera(nodes: int, rounds: int, folder: Path) -> tuple[float, float, float]:
    """CPU s of the loop and of the writer, and bytes on disk."""
    fleet, now = Fleet(nodes), [float(BEGAN)]
    store = SampleStore(folder, SampleLimits(8 << 30), lambda: now[0])
    board = SampleBoard(engine_of(fleet.names), store, lambda: now[0])
    wire = Wire(fleet.names, board)
    for some in slices(nodes):
        await wire.greet(some)
    loop_s, before_s = 0.0, process_time() - thread_time()
    for _ in range(rounds):
        for some in slices(nodes):
            loop_s += await wire.tell(some, fleet)
        now[0] += EVERY_S
    store.close()
    writer_s = process_time() - thread_time() - before_s
    file = ChunkFile(folder / "raw.db", 8 << 30)
    size = file.bytes_used()
    file.close()
    assert +board.counts == +store.counts == {}
    return loop_s, writer_s, size


def an_hour(folder: Path) -> tuple[float, float]:
    """CPU s of the writer for an hour of a few nodes, downsampled, and bytes of its points."""
    fleet, now = Fleet(NODES_AN_HOUR), [float(BEGAN // HOUR_S * HOUR_S)]
    store = SampleStore(folder, SampleLimits(), lambda: now[0])
    before_s = process_time() - thread_time()
    for _ in range(ROUNDS_AN_HOUR):
        for number, name in enumerate(fleet.names):
            values = {Series(one): value for one, value in fleet.measured(number).items()}
            store.add(SampleBatch(node_id(name), now[0], values))
        now[0] += EVERY_S
        while store.waiting:
            sleep(0.001)
    store.close()
    spent_s = process_time() - thread_time() - before_s
    file = ChunkFile(folder / "downsampled.db", 1 << 30)
    size = file.bytes_used()
    file.close()
    return spent_s, size


def plain(nodes: int, rounds: int, path: Path) -> tuple[float, float]:
    """CPU s and bytes of a table with a row for each number."""
    fleet = Fleet(nodes)
    file = sqlite3.connect(path)
    file.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
        "CREATE TABLE samples (node TEXT, series TEXT, at REAL, value REAL);"
        "CREATE INDEX samples_by ON samples (node, series, at);"
    )
    spent_s = 0.0
    for number_of_round in range(rounds):
        at = float(BEGAN + number_of_round * EVERY_S)
        rows = [
            (name, series, at, value)
            for number, name in enumerate(fleet.names)
            for series, value in fleet.measured(number).items()
        ]
        began = process_time()
        with file:
            file.executemany("INSERT INTO samples VALUES (?, ?, ?, ?)", rows)
        spent_s += process_time() - began
    file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    file.close()
    return spent_s, path.stat().st_size


def slices(nodes: int) -> Iterator[range]:
    for begin in range(0, nodes, TOGETHER):
        yield range(begin, min(begin + TOGETHER, nodes))


def main(nodes: int = NODES, rounds: int = ROUNDS) -> None:
    samples = nodes * rounds * SENSORS
    per_s = NODES * SENSORS / EVERY_S
    with tempfile.TemporaryDirectory() as folder:
        loop_s, writer_s, size = asyncio.run(haptera(nodes, rounds, Path(folder) / "samples"))
        hour_s, points_size = an_hour(Path(folder) / "hour")
        plain_s, plain_size = plain(nodes, rounds, Path(folder) / "plain.db")
    hours = NODES_AN_HOUR * SENSORS * ROUNDS_AN_HOUR
    points = NODES_AN_HOUR * SENSORS * HOUR_S / STEP_S
    print(f"{nodes} nodes, {SENSORS} numbers each, {rounds} rounds; shares: of {NODES} nodes")
    for name, each_s, stored in (
        ("haptera, loop", loop_s / samples, None),
        ("haptera, writer", writer_s / samples, size / samples),
        ("haptera, writer, downsampling", hour_s / hours, None),
        ("plain SQLite, writing alone", plain_s / samples, plain_size / samples),
    ):
        text = "" if stored is None else f", {stored:5.1f} bytes a number"
        print(f"{name:30} {each_s * 1e6:6.2f} us a number, {each_s * per_s:6.1%} of a core{text}")
    print(f"{points_size / points:.1f} bytes a point of {STEP_S} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
