"""What a hello costs from one engine to the other: encode, seal, send, receive, open, read.

    python -m benchmarks.hello_path [ROUNDS]

Both ends are in this process, on loopback; figures are its CPU time, the kernel's part included.
The baselines, in the same run and in turns with it, are a plain receive loop that looks at nothing,
and HMAC with JSON that is always decoded, once in such a loop and once in an asyncio
DatagramProtocol, which is how such a thing is usually written. The ratios are what counts.
"""

import asyncio
import hmac
import json
import socket
import statistics
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import process_time_ns
from typing import Any
from uuid import UUID

import msgspec

from haptera.kinds import KINDS
from haptera.model.events import Alive, Event, Heard
from haptera.model.messages import Mark, Message
from haptera.runtime.network.udp import Udp
from haptera.wire.seal import Agreement, SealRole, Session
from haptera.wire.updates import Codec

ROUNDS = 60
ROUNDS_WARM = 5
HELLOS = 256
HOST = "127.0.0.1"
SECRET = bytes(range(32))
RECEIVE_BYTES = 4 << 20
CODEC = Codec(KINDS.values(), schema=77)
HELLO = Message(1, 0, 77, Mark(1, 1, 1), Mark(0, 1, 1), words=(0x2A,))


@dataclass(frozen=True)
class Path:
    """One way for `HELLOS` hellos to go: how they are sent, and how all are waited for."""

    name: str
    send: Callable[[], None]
    receive: Callable[[], Awaitable[None]]


def bound() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    made.bind((HOST, 0))
    made.settimeout(0)
    return made


def loop_path(name: str, datagram: Callable[[], bytes], read: Callable[[bytes], object]) -> Path:
    """A plain loop over one socket."""
    sender, receiver = bound(), bound()
    address = receiver.getsockname()

    def send() -> None:
        for _ in range(HELLOS):
            sender.sendto(datagram(), address)

    async def receive() -> None:
        for _ in range(HELLOS):
            read(receiver.recv(2048))

    return Path(name, send, receive)


def json_datagram() -> bytes:
    text = json.dumps(msgspec.to_builtins(HELLO)).encode()
    return hmac.digest(SECRET, text, "sha256") + text


def read_json(datagram: bytes) -> Any:
    if not hmac.compare_digest(hmac.digest(SECRET, datagram[32:], "sha256"), datagram[:32]):
        raise ValueError("forged")
    return json.loads(datagram[32:])


class Counting(asyncio.DatagramProtocol):
    """Reads each datagram as it comes; `left` counts down."""

    def __init__(self) -> None:
        self.left = 0
        self.done = asyncio.Event()

    def datagram_received(self, data: bytes, addr: object) -> None:
        read_json(data)
        self.left -= 1
        if self.left == 0:
            self.done.set()


async def protocol_path() -> Path:
    sender, receiver = bound(), bound()
    address = receiver.getsockname()
    loop = asyncio.get_running_loop()
    _, counting = await loop.create_datagram_endpoint(Counting, sock=receiver)

    def send() -> None:
        counting.left = HELLOS
        counting.done.clear()
        for _ in range(HELLOS):
            sender.sendto(json_datagram(), address)

    async def receive() -> None:
        await counting.done.wait()

    return Path("HMAC + JSON, DatagramProtocol", send, receive)


async def sealed_path(name: str, changed: int) -> Path:
    """One parent and `HELLOS` children; so many of these say something new each time."""
    parent, children = Udp.bind(HOST, 0), Udp.bind(HOST, 0)
    heard: set[str] = set()
    done = asyncio.Event()

    def deliver(events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Heard):
                heard.add(event.peer)
            elif isinstance(event, Alive):
                heard.update(event.peers)
        if len(heard) == HELLOS:
            done.set()

    parent.start(CODEC, deliver, lambda *moved: None)
    children.start(CODEC, lambda events: None, lambda *moved: None)
    for number in range(HELLOS):
        agreement = Agreement(SECRET, UUID(int=1), UUID(int=number), 1, number, HELLOS + number)
        parent.add(str(number), Session(agreement, SealRole.PARENT, 1), (HOST, children.port))
        children.add(str(number), Session(agreement, SealRole.CHILD, 2), (HOST, parent.port))
    version = 0

    def send() -> None:
        nonlocal version
        version += 1
        heard.clear()
        done.clear()
        news = msgspec.structs.replace(HELLO, observed=Mark(0, version, version))
        for number in range(HELLOS):
            children.tell(str(number), news if number < changed else HELLO)

    async def receive() -> None:
        await done.wait()

    return Path(name, send, receive)


async def measure(rounds: int) -> dict[str, tuple[float, float]]:
    """For each path the medians of what sending and what receiving one hello takes, in us."""
    bare = bytes(138)  # as long as a sealed hello
    paths = [
        loop_path("plain recv loop", lambda: bare, len),
        await sealed_path("haptera, none changed", 0),
        await sealed_path("haptera, 1 in 10 changed", HELLOS // 10),
        await sealed_path("haptera, all changed", HELLOS),
        loop_path("HMAC + JSON, recv loop", json_datagram, read_json),
        await protocol_path(),
    ]
    taken: dict[str, list[tuple[int, int]]] = {path.name: [] for path in paths}
    for _ in range(ROUNDS_WARM + rounds):
        for path in paths:
            begun = process_time_ns()
            path.send()
            sent = process_time_ns()
            async with asyncio.timeout(10):
                await path.receive()
            taken[path.name].append((sent - begun, process_time_ns() - sent))
    return {
        name: (
            statistics.median(send for send, _ in times[ROUNDS_WARM:]) / HELLOS / 1000,
            statistics.median(receive for _, receive in times[ROUNDS_WARM:]) / HELLOS / 1000,
        )
        for name, times in taken.items()
    }


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    results = asyncio.run(measure(rounds))
    base = sum(results["plain recv loop"])
    print(f"{HELLOS} hellos a round, {rounds} rounds; CPU us for each hello, medians")
    print(f"{'path':32}{'send':>8}{'receive':>9}{'both':>8}{'to plain':>10}")
    for name, (send, receive) in results.items():
        both = send + receive
        print(f"{name:32}{send:8.1f}{receive:9.1f}{both:8.1f}{both / base:9.1f}x")


if __name__ == "__main__":
    main()
