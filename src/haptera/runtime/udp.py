"""The one socket for datagrams: drained in bounded batches, each peer's by its session."""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from haptera.model.errors import HapteraError
from haptera.model.events import Alive, Event, Heard
from haptera.model.messages import Message
from haptera.runtime.clock import now_ns
from haptera.wire.frame import DATAGRAM_BYTES_MAX, DatagramType, Reject, receiver_of
from haptera.wire.seal import Greet, Opened, Session
from haptera.wire.sync import decode, encode
from haptera.wire.updates import Codec

# One drain: so many datagrams or so long; then the loop has its turn.
DRAIN_DATAGRAMS_MAX: Final = 2_000
DRAIN_NS_MAX: Final = 5_000_000
# After a drain the socket rests: at evenly spaced arrivals waking up is what costs.
REST_S: Final = 0.010
RECEIVE_BYTES: Final = 4 << 20

Address = tuple[str, int]
# A peer's address or process on record changed: its name, the address, its boot-id.
Moved = Callable[[str, Address, int | None], None]


@dataclass(slots=True)
class _Link:
    """One peer: its session, where it is reached, and what it said last."""

    name: str
    session: Session
    address: Address
    schema: int | None = None
    body: bytes | None = None


class Udp:
    """Sessions over one bound socket. `counts` says what was refused, and why."""

    @classmethod
    def bind(cls, host: str, port: int) -> Self:
        """A socket of our own; port 0 takes a free one.

        Raises:
            HapteraError: there is no such address, or its port is in use.
        """
        bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        try:
            bound.bind((host, port))
        except OSError as error:
            bound.close()
            raise HapteraError(
                f"cannot be listened on: {error.strerror}",
                where=f"{host}:{port}/udp",
                do="stop what uses it, or give another address or port",
            ) from None
        return cls(bound)

    def __init__(self, bound: socket.socket) -> None:
        bound.settimeout(0)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        self._socket = bound
        self._links: dict[int, _Link] = {}
        self._by_name: dict[str, _Link] = {}
        self.counts: Counter[str] = Counter()

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    def start(self, codec: Codec, deliver: Callable[[list[Event]], None], moved: Moved) -> None:
        """Listen from now on; needs a running loop."""
        self._codec, self._deliver, self._moved = codec, deliver, moved
        self._loop = asyncio.get_running_loop()
        self._listen()

    def close(self) -> None:
        if self._socket.fileno() >= 0 and hasattr(self, "_loop"):
            self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    def add(self, peer: str, session: Session, address: Address) -> None:
        """Hear and reach this peer by this session; an earlier one of it is over."""
        old = self._by_name.pop(peer, None)
        if old is not None:
            self._links.pop(old.session.own_index, None)
        link = _Link(peer, session, address)
        self._by_name[peer] = self._links[session.own_index] = link

    def tell(self, peer: str, message: Message) -> None:
        """Seal and send; what cannot be sent is lost, as datagrams are."""
        link = self._by_name.get(peer)
        if link is None:
            self.counts["no session"] += 1
            return
        for body in encode(message, self._codec, link.schema):
            self._send(link.session.seal(body), link.address)

    def _listen(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.add_reader(self._socket.fileno(), self._drain)

    def _drain(self) -> None:
        arrived_at = now_ns()
        events: list[Event] = []
        alive: list[str] = []
        for _ in range(DRAIN_DATAGRAMS_MAX):
            try:
                datagram, address = self._socket.recvfrom(DATAGRAM_BYTES_MAX + 1)
            except BlockingIOError:
                break
            except OSError:  # what an earlier datagram of ours met: nobody listens there
                continue
            event = self._open(datagram, address, arrived_at)
            if isinstance(event, Heard):
                events.append(event)
            elif event is not None:
                alive.append(event)
            if now_ns() - arrived_at > DRAIN_NS_MAX:
                break
        if alive:
            events.append(Alive(tuple(alive), arrived_at))
        if events:
            self._deliver(events)
        self._loop.remove_reader(self._socket.fileno())
        self._loop.call_later(REST_S, self._listen)

    def _open(self, datagram: bytes, address: Address, now: int) -> Heard | str | None:
        """What a datagram says: a message, the name of a peer that says what it said, nothing."""
        index = receiver_of(datagram)
        link = None if isinstance(index, Reject) else self._links.get(index)
        if link is None:
            self.counts["no session"] += 1
            return None
        match link.session.open(datagram, now):
            case Opened() as opened:
                return self._take(link, opened, address, now)
            case Greet() as greet:
                self._send(link.session.seal_hi(greet), link.address)
            case Reject(reason):
                self.counts[reason] += 1
        return None

    def _take(self, link: _Link, opened: Opened, address: Address, now: int) -> Heard | str | None:
        if opened.new_boot:
            link.body = None
        if opened.new_boot or (address != link.address and not opened.late):
            link.address = address
            self._moved(link.name, address, opened.boot)
        if opened.type is DatagramType.HI:
            return None
        if opened.body == link.body:
            return link.name
        message = decode(opened.body, self._codec)
        if isinstance(message, Reject):
            self.counts[message.reason] += 1
            return None
        if not opened.late:
            link.body, link.schema = opened.body, message.schema
        return Heard(link.name, opened.boot, message, now)

    def _send(self, datagram: bytes, address: Address) -> None:
        try:
            self._socket.sendto(datagram, address)
        except OSError:
            self.counts["not sent"] += 1
