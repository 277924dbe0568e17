"""What an attack costs a parent: each sort of datagram that is refused or taken, each handshake.

    python -m benchmarks.refusals [ROUNDS]

Datagrams wait in the socket of a real `Udp` before it reads them; the baseline, in the same run and
in turns with it, is a plain receive loop. Handshakes are made with the real server of the nodes'
port, which runs in a process of its own, by who has no certificate. Figures are CPU time of the
parent's side alone, the kernel's part included; how many there can be in a second follows.

Then a process floods the real `Udp` with datagrams for one session, as fast as it can, and a beat
of another session is sent every 20 ms: how many of these are heard. And some flood the nodes' port
with whole handshakes: how much CPU that takes of the parent.
"""

import asyncio
import contextlib
import multiprocessing
import random
import socket
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, repeat
from multiprocessing.connection import Connection
from pathlib import Path
from time import process_time_ns
from uuid import UUID

import msgspec

from benchmarks.hello_path import CODEC, HELLO, HOST, SECRET, bound
from haptera.model.events import Event, Heard
from haptera.model.messages import Mark
from haptera.runtime.network.udp import Udp
from haptera.wire.seal import Agreement, Greet, SealRole, Session
from haptera.wire.sync import encode
from tests.runtime.test_enrol import parent

ROUNDS = 20
ROUNDS_WARM = 2
DATAGRAMS = 1_000
HANDSHAKES = 300
FLOOD_S, BEAT_S = 4.0, 0.02
BOOT = slice(8, 16)
CHILD, LAST = 2, 3


class Parent:
    """One real socket with two sessions; the second one's word shows that all before was read."""

    def __init__(self) -> None:
        self._udp = Udp.bind(HOST, 0)
        self._sender = bound()
        self._read = asyncio.Event()
        self._version = self.heard = 0
        self._udp.start(CODEC, self._deliver, lambda *moved: None)
        self.child, self._last = self._session("child", CHILD), self._session("last", LAST)

    def _session(self, name: str, number: int) -> Session:
        agreement = Agreement(SECRET, UUID(int=1), UUID(int=number), 1, number, 10 * number)
        session = Session(agreement, SealRole.PARENT, 1)
        self._udp.add(name, session, self._sender.getsockname())
        child = Session(agreement, SealRole.CHILD, number)
        greet = session.open(child.seal(self.news()), 0)
        assert isinstance(greet, Greet)
        child.open(session.seal_hi(greet), 0)
        return child

    def news(self) -> bytes:
        """A body that was never sent before."""
        self._version += 1
        message = msgspec.structs.replace(HELLO, observed=Mark(0, self._version, self._version))
        return encode(message, CODEC, CODEC.schema)[0]

    @property
    def port(self) -> int:
        return self._udp.port

    @property
    def seen(self) -> int:
        """How many datagrams of the flood came out of the socket, whatever became of them."""
        return sum(self._udp.counts.values())

    def said(self) -> bytes:
        """What the first session has said just now."""
        datagram = self.child.seal(self.news())
        self._sender.sendto(datagram, (HOST, self._udp.port))
        return datagram

    def beat(self) -> None:
        """The second session says something new."""
        self._sender.sendto(self._last.seal(self.news()), (HOST, self._udp.port))

    def _deliver(self, events: list[Event]) -> None:
        self.heard += sum(isinstance(one, Heard) and one.peer == "last" for one in events)
        if any(isinstance(one, Heard) and one.peer == "last" for one in events):
            self._read.set()

    async def take(self, datagrams: list[bytes]) -> int:
        """The CPU time that reading all of these takes, in ns."""
        for datagram in (*datagrams, self._last.seal(self.news())):
            self._sender.sendto(datagram, (HOST, self._udp.port))
        self._read.clear()
        begun = process_time_ns()
        async with asyncio.timeout(10):
            await self._read.wait()
        return process_time_ns() - begun


def sorts(one: Parent) -> dict[str, Callable[[], list[bytes]]]:
    """What comes to a parent, by name."""
    rng = random.Random(1)
    same = one.news()

    def sealed() -> list[bytes]:
        return [one.child.seal(same) for _ in range(DATAGRAMS)]

    def forged() -> list[bytes]:
        return [datagram[:-8] + rng.randbytes(8) for datagram in sealed()]

    def forged_boots() -> list[bytes]:
        return [
            datagram[: BOOT.start] + rng.randbytes(8) + datagram[BOOT.stop :]
            for datagram in sealed()
        ]

    return {
        "a hello, as before": sealed,
        "something new, beyond the budget": lambda: [
            one.child.seal(one.news()) for _ in range(DATAGRAMS)
        ],
        "a copy": lambda: sealed()[:1] * DATAGRAMS,
        "a forged seal": forged,
        "a forged boot-id": forged_boots,
        "for no session": lambda: [rng.randbytes(138) for _ in range(DATAGRAMS)],
    }


async def measure(rounds: int) -> dict[str, float]:
    """For each sort the median of what one takes, in us; the plain loop's first."""
    one, plain_sender, plain = Parent(), bound(), bound()
    taken: dict[str, list[int]] = {"plain recv loop": []}
    made = sorts(one)
    for _ in range(ROUNDS_WARM + rounds):
        for _ in range(DATAGRAMS):
            plain_sender.sendto(bytes(138), plain.getsockname())
        begun = process_time_ns()
        for _ in range(DATAGRAMS):
            plain.recv(2_048)
        taken["plain recv loop"].append(process_time_ns() - begun)
        for name, make in made.items():
            taken.setdefault(name, []).append(await one.take(make()))
    return {
        name: statistics.median(times[ROUNDS_WARM:]) / DATAGRAMS / 1_000
        for name, times in taken.items()
    }


Make = Callable[[Parent], Iterator[bytes]]


def shout(place: tuple[str, int], datagrams: Iterator[bytes], address: str) -> None:
    """Send these as fast as possible, until killed."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.bind((address, 0))
        end.connect(place)
        for datagram in datagrams:
            end.send(datagram)


async def beats(make: Make | None) -> tuple[int, int, int]:
    """How many beats were sent beside such a flood and how many heard, and what the flood sent."""
    one = Parent()
    place = (HOST, one.port)
    flood = None
    if make is not None:
        flood = multiprocessing.Process(target=shout, args=(place, make(one), HOST), daemon=True)
        flood.start()
    try:
        loop = asyncio.get_running_loop()
        sent, until = 0, loop.time() + FLOOD_S
        while loop.time() < until:
            one.beat()
            sent += 1
            await asyncio.sleep(BEAT_S)
        await asyncio.sleep(BEAT_S)
        return sent, one.heard, one.seen
    finally:
        if flood is not None:
            flood.kill()
            flood.join()


FLOODS: dict[str, Make | None] = {
    "no flood": None,
    "something new, authentic": lambda one: (one.child.seal(one.news()) for _ in count()),
    "one copy": lambda one: repeat(one.said()),
    "forged seals": lambda one: repeat(one.child.seal(one.news())[:-8] + bytes(8)),
    "for no session": lambda one: repeat(bytes(138)),
    # It may be somebody else who sends that in its name: so it is not muted.
    "one copy, from its own address": lambda one: repeat(one.child.seal(one.news())),
}


def serve(folder: Path, link: Connection) -> None:
    """Serve the nodes' port until told to end; tells its CPU time whenever it is asked."""

    async def run() -> None:
        async with parent(folder, within_s=60.0) as one:
            link.send(one.address)
            while await asyncio.to_thread(link.recv):
                link.send(process_time_ns())

    asyncio.run(run())


@contextmanager
def serving() -> Iterator[tuple[tuple[str, int], Connection]]:
    ours, theirs = multiprocessing.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        process = multiprocessing.Process(target=serve, args=(Path(folder), theirs))
        process.start()
        try:
            yield ours.recv(), ours
        finally:
            ours.send(None)
            process.join()


def handshakes() -> float:
    """What one costs the parent, in ms: it is made whole, and nothing is claimed after it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with serving() as (place, link):
        spent = []
        # Each address has a budget, and so have all of them.
        addresses = ((f"127.1.{one // 250}.{one % 250 + 1}", 0) for one in range(2 * HANDSHAKES))
        for count in (HANDSHAKES // 10, HANDSHAKES):
            link.send("spent")
            before = link.recv()
            for _ in range(count):
                with socket.create_connection(place, source_address=next(addresses)) as end:
                    context.wrap_socket(end).close()
            link.send("spent")
            spent.append((link.recv() - before) / count / 1_000_000)
    return spent[-1]


def shake(place: tuple[str, int]) -> None:
    """Make whole handshakes one after the other, until killed."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    while True:
        with contextlib.suppress(OSError), socket.create_connection(place) as end:
            context.wrap_socket(end).close()


def flood_of_handshakes() -> float:
    """The share of a core that a flood of them takes at the parent."""
    with serving() as (place, link):
        floods = [multiprocessing.Process(target=shake, args=(place,)) for _ in range(4)]
        for one in floods:
            one.start()
        time.sleep(FLOOD_S)  # what comes at once is over
        link.send("spent")
        before, begun = link.recv(), time.monotonic()
        time.sleep(FLOOD_S)
        link.send("spent")
        spent, took_s = link.recv() - before, time.monotonic() - begun
        for one in floods:
            one.kill()
            one.join()
    return spent / took_s / 1e9


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    each_ms, share = handshakes(), flood_of_handshakes()
    results = asyncio.run(measure(rounds))
    base = results["plain recv loop"]
    print(f"{DATAGRAMS} datagrams a round, {rounds} rounds; CPU of the parent's side, medians")
    print(f"{'what comes':36}{'us each':>9}{'a second':>10}{'to plain':>10}")
    for name, each in results.items():
        print(f"{name:36}{each:9.1f}{1e6 / each:10,.0f}{each / base:9.1f}x")
    each = each_ms * 1_000
    print(f"{'a TLS handshake':36}{each:9.1f}{1e6 / each:10,.0f}{each / base:9.1f}x")
    heads = f"{'flood of datagrams':36}{'beats sent':>11}{'heard':>7}"
    print(f"\n{heads}{'of the flood read, a second':>29}")
    for name, flood in FLOODS.items():
        sent, heard, seen = asyncio.run(beats(flood))
        print(f"{name:36}{sent:11}{heard:7}{seen / FLOOD_S:29,.0f}")
    print(f"\nwhole handshakes from one address, 4 at once: {share:.0%} of a core at the parent")


if __name__ == "__main__":
    main()
