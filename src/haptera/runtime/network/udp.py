"""The one socket for datagrams: drained in bounded batches, each peer's by its session.

Reading a datagram costs a fraction of opening its seal. So all that waits is read first, into a
short line for each peer, and the lines are served in turn: who sends more than can be opened loses
its own. A line that sends far more than that is dropped by the kernel for a while, so that it
does not fill the socket's buffer either.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, Self

from haptera.kinds.host_port import HostPort
from haptera.model.errors import Code, HapteraError
from haptera.model.events import Alive, Event, Heard
from haptera.model.messages import Message
from haptera.model.samples import Measurement
from haptera.runtime.clock import now_ns
from haptera.runtime.network.arrivals import ArrivalReader
from haptera.runtime.network.lines import DatagramLines
from haptera.runtime.network.peer_link import Address, PeerLink, Waiting
from haptera.wire.frame import DATAGRAM_BYTES_MAX, DatagramType, FrameFault, Reject, receiver_of
from haptera.wire.samples import decode_samples, encode_samples
from haptera.wire.seal import Greet, Opened, Origin, Session
from haptera.wire.sync import decode, encode
from haptera.wire.updates import Codec

# One drain: so many datagrams or so long are read, and so long seals are opened; then the loop has
# its turn.
DRAIN_DATAGRAMS_MAX: Final = 10_000
DRAIN_NS_MAX: Final = 5_000_000
_DATAGRAMS_PER_CLOCK_READING: Final = 64
# After a drain the socket rests: at evenly spaced arrivals waking up is what costs.
REST_S: Final = 0.010
# With so many events that the engine has not taken in, nothing more is read from the socket.
INBOX_MAX: Final = 20_000

# A peer's address or process on record changed: its name, the address, its boot-id.
Moved = Callable[[str, Address, int], None]
# A peer has shown to have heard what we sent at this time, in ns.
Confirmed = Callable[[int], None]
# A peer tells what was measured.
Sampled = Callable[[str, list[Measurement]], None]
# So many datagrams that no later one has confirmed are remembered, each with when it was sent.
UNCONFIRMED_MAX: Final = 256


class Udp:
    """Sessions over one bound socket. `counts` says what was refused or not sent, and why."""

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
                f"cannot listen: {error.strerror}",
                where=f"{HostPort(host, port)}/udp",
                do="stop what uses it, or give another address or port",
                code=Code.CANNOT_LISTEN,
            ) from None
        return cls(bound)

    def __init__(self, bound: socket.socket) -> None:
        bound.settimeout(0)
        self._socket = bound
        self._reader = ArrivalReader(bound)
        self._links: dict[int, PeerLink] = {}
        self._by_name: dict[str, PeerLink] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._holding: dict[str, None] = {}
        self._confirmed: Confirmed | None = None
        self._sampled: Sampled | None = None
        self.counts: Counter[str] = Counter()
        self._lines = DatagramLines(bound, self.counts)

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    def start(
        self,
        codec: Codec,
        deliver: Callable[[list[Event]], None],
        moved: Moved,
        waiting: Callable[[], int] = lambda: 0,
        confirmed: Confirmed | None = None,
        sampled: Sampled | None = None,
    ) -> None:
        """Listen from now on; needs a running loop.

        `deliver` gets one list for each drain; `moved` what our next process needs to know.
        `waiting` says how many events were delivered that nobody has taken in yet; `confirmed`
        gets when that was sent which a peer has heard, whenever it shows to, and `sampled` what
        a peer measured, past all events.
        """
        self._codec, self._deliver, self._moved = codec, deliver, moved
        self._waiting = waiting
        self._confirmed, self._sampled = confirmed, sampled
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._reader.descriptor, self._drain)

    def close(self) -> None:
        """Hear nothing more, and let go of the port."""
        if self._rest is not None:
            self._rest.cancel()
        if self._loop is not None:
            self._loop.remove_reader(self._reader.descriptor)
            self._loop = None
        self._socket.close()

    def add(self, peer: str, session: Session, address: Address) -> None:
        """Hear and reach this peer by this session; an earlier one of it is over."""
        self.remove(peer)
        link = PeerLink(peer, session, address, session.peer_boot)
        self._by_name[peer] = self._links[session.own_index] = link

    def remove(self, peer: str) -> None:
        """The peer is no longer ours."""
        link = self._by_name.pop(peer, None)
        if link is not None:
            del self._links[link.session.own_index]
            self._lines.remove(link)
            self._holding.pop(peer, None)

    def confirmed(self, peer: str) -> int:
        """Which of our datagrams is the last that this peer has shown to have heard."""
        return self._by_name[peer].session.confirmed

    def tell(self, peer: str, message: Message) -> None:
        """Seal and send; what cannot be sent is lost, as datagrams are."""
        link = self._by_name.get(peer)
        if link is None:
            self.counts["no session"] += 1
            return
        # The parts that are planned with change when a module is replaced.
        self._codec.schema = message.schema
        schema = message.schema if link.reads else link.schema
        bodies = encode(message, self._codec, schema)
        link.told = bodies[0]
        for body in bodies:
            self._seal(link, body)

    def tell_measured(self, peer: str, measured: Measurement) -> None:
        """Send measurements once; drop them if nothing was sent to this peer before."""
        link = self._by_name.get(peer)
        if link is None or link.told is None:
            self.counts["no session"] += 1
            return
        for body in encode_samples(link.told, measured):
            self._seal(link, body)

    def _drain(self) -> None:
        if self._waiting() >= INBOX_MAX:
            self.counts["inbox full"] += 1
            self._take_a_rest()
            return
        now = self._reader.begin()
        is_empty = self._receive(now)
        events: list[Event] = list(self._released(now))
        alive: dict[str, int] = {}
        for said in self._opened(now):
            if isinstance(said, Heard):
                alive.pop(said.peer, None)
                events.append(said)
            else:
                name, arrived_at = said
                alive[name] = arrived_at
        by_time: dict[int, list[str]] = {}
        for name, arrived_at in alive.items():
            by_time.setdefault(arrived_at, []).append(name)
        events += [Alive(tuple(names), arrived_at) for arrived_at, names in by_time.items()]
        if events:
            self._deliver(events)
        if is_empty:
            self._take_a_rest()

    def _receive(self, begun_at: int) -> bool:
        """Line up what waits in the socket; whether that was all, else the loop calls again."""
        for count in range(1, DRAIN_DATAGRAMS_MAX + 1):
            try:
                datagram, address = self._reader.read(DATAGRAM_BYTES_MAX + 1)
            except BlockingIOError:
                return True
            except OSError:  # what an earlier datagram of ours met: nobody listens there
                self.counts["unreachable"] += 1
                continue
            index = receiver_of(datagram)
            link = None if isinstance(index, Reject) else self._links.get(index)
            if link is None:
                self.counts[FrameFault.INDEX] += 1
            else:
                self._lines.add(link, (datagram, address, self._reader.arrived_at), begun_at)
            if count % _DATAGRAMS_PER_CLOCK_READING == 0 and now_ns() - begun_at > DRAIN_NS_MAX:
                return False
        return False

    def _opened(self, now: int) -> Iterator[Heard | tuple[str, int]]:
        """What those say whose turn it is, one after the other, for as long as one drain may.

        Of who says what it last said, its name and when.
        """
        begun_at, count = now_ns(), 0
        while self._lines:
            link, waiting = self._lines.pop()
            said = self._open(link, waiting, now)
            if isinstance(said, str):
                yield said, waiting[2]
            elif said is not None:
                yield said
            count += 1
            if count % _DATAGRAMS_PER_CLOCK_READING == 0 and now_ns() - begun_at > DRAIN_NS_MAX:
                return

    def _released(self, now: int) -> Iterator[Heard]:
        """What peers said beyond their budgets that there is room for by now."""
        for name in list(self._holding):
            link = self._by_name[name]
            if link.held is not None and not link.budget.take(now):
                continue
            del self._holding[name]
            held, link.held = link.held, None
            said = None if held is None else self._read(link, *held)
            if isinstance(said, Heard):
                yield said

    def _take_a_rest(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._reader.descriptor)
        self._rest = loop.call_later(0 if self._lines else REST_S, self._wake)

    def _wake(self) -> None:
        asyncio.get_running_loop().add_reader(self._reader.descriptor, self._drain)
        if self._holding or self._lines:
            self._drain()

    def _open(self, link: PeerLink, waiting: Waiting, now: int) -> Heard | str | None:
        """What a datagram says: a message, the name of a peer that says what it said, nothing."""
        datagram, address, arrived_at = waiting
        origin = Origin.ON_RECORD if address[:2] == link.address else Origin.ELSEWHERE
        found = link.session.open(datagram, now, origin)
        if origin is Origin.ON_RECORD:
            link.lines.opened(own=not isinstance(found, Reject))
        match found:
            case Opened() as opened:
                self._note(link, opened, address)
                return self._said(link, opened, arrived_at, now)
            case Greet() as greet:
                # To the address on record: the datagram may be a recorded one, from anywhere.
                self._send(link.session.seal_hi(greet), link.address)
            case Reject(reason):
                self.counts[reason] += 1
        return None

    def _note(self, link: PeerLink, opened: Opened, address: Address) -> None:
        """Where the peer now is, and as which process."""
        if opened.new_boot:
            link.heard = link.held = None
        here = link.address if opened.late else address[:2]
        if self._confirmed is not None:
            sent_at = None
            while link.sent and link.sent[0][0] <= link.session.confirmed:
                sent_at = link.sent.pop(0)[1]
            if sent_at is not None:
                self._confirmed(sent_at)
        if (here, opened.boot) != (link.address, link.boot):
            link.address, link.boot = here, opened.boot
            self._moved(link.name, here, opened.boot)

    def _said(
        self, link: PeerLink, opened: Opened, arrived_at: int, now: int
    ) -> Heard | str | None:
        if opened.type is DatagramType.HI:
            # It could not take up what it was sent; sent again, it can. The rest is not
            # repeated: what it lacks of that the next hellos show.
            if link.told is not None:
                self._seal(link, link.told)
            return None
        if (measured := decode_samples(opened.body)) is not None:
            self._hand_on(link, measured, now)
            return None
        if opened.body == link.heard:
            # What is held was said before it, unless this was overtaken.
            link.held = link.held if opened.late else None
            return link.name
        if link.held is not None or not link.budget.take(now):
            self.counts["beyond budget"] += 1
            if not opened.late:
                link.held = opened, arrived_at
                self._holding[link.name] = None
            return link.name
        return self._read(link, opened, arrived_at)

    def _hand_on(self, link: PeerLink, measured: list[Measurement] | Reject, now: int) -> None:
        """Deliver a peer's measurements: they prove no engine alive; beyond its share they drop."""
        if isinstance(measured, Reject):
            self.counts[measured.reason] += 1
        elif not link.may_tell_samples(now):
            self.counts["samples beyond their share"] += 1
        elif self._sampled is not None:
            self._sampled(link.name, measured)

    def _read(self, link: PeerLink, opened: Opened, arrived_at: int) -> Heard | str | None:
        """What a message says that is not the one before."""
        message = decode(opened.body, self._codec, link.name)
        if isinstance(message, Reject):
            self.counts[message.reason] += 1
            return None
        if opened.late and not message.updates and link.heard is not None:
            return link.name  # a hello that a later one overtook: nothing in it is news
        link.schema, link.reads = message.schema, message.reads
        link.heard = None if opened.late else opened.body
        if opened.late:
            message = message.overtaken()
        return Heard(link.name, opened.boot, message, arrived_at)

    def _seal(self, link: PeerLink, body: bytes) -> None:
        # Before it goes out: what is confirmed was sent no earlier.
        sent_at = now_ns()
        datagram = link.session.seal(body)
        if self._confirmed is not None:
            link.sent.append((link.session.sent, sent_at))
            del link.sent[:-UNCONFIRMED_MAX]
        self._send(datagram, link.address)

    def _send(self, datagram: bytes, address: Address) -> None:
        try:
            self._socket.sendto(datagram, address)
        except OSError:  # no buffer, no route, nobody there: lost, and repaired by the next hello
            self.counts["not sent"] += 1
