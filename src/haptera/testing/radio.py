"""One end of sealed datagrams in a world: the real session and codec on the simulated network."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from haptera.core.state.side import PARENT
from haptera.model.events import Alive, Event, Heard
from haptera.model.messages import Message
from haptera.testing.clock import MachineClock
from haptera.testing.network import Network
from haptera.wire.frame import DatagramType, Reject
from haptera.wire.seal import Agreement, Greet, Opened, SealRole, Session
from haptera.wire.sync import decode, encode
from haptera.wire.updates import Codec

CLUSTER = UUID(int=1)


def agree(node: str, incarnation: int) -> Agreement:
    """What enrolment would have given a node and its parent."""
    secret = sha256(f"{node}/{incarnation}".encode()).digest()
    return Agreement(secret, CLUSTER, UUID(bytes=secret[:16]), incarnation, 1, 2)


@dataclass(frozen=True, slots=True)
class Station:
    """How a process is called on the network, and how the parent `above` it is."""

    name: str
    above: str = PARENT

    def address(self, peer: str) -> str:
        """A neighbour's name on the network."""
        return self.above if peer == PARENT else peer

    def peer(self, address: str) -> str:
        """The neighbour with this name on the network."""
        return PARENT if address == self.above else address


class Radio:
    """All sessions of one process; `saved` outlives it: the peer boot-ids on record."""

    def __init__(
        self,
        station: Station,
        boot: int,
        codec: Codec,
        clock: MachineClock,
        network: Network,
        deliver: Callable[[list[Event]], None],
        saved: dict[str, int],
    ) -> None:
        self._station = station
        self._name, self._boot, self._codec = station.name, boot, codec
        self._clock, self._network, self._deliver = clock, network, deliver
        self._saved = saved
        self._sessions: dict[str, Session] = {}
        self._incarnations: dict[str, int] = {}
        self._schemas: dict[str, int] = {}
        self._bodies: dict[str, bytes] = {}
        network.attach(station.name, self._receive)

    def join(self, peer: str, agreement: Agreement, role: SealRole) -> None:
        """A session, new or saved; a new one begins without a peer's boot-id."""
        boot = self._saved.get(f"{peer}/{agreement.incarnation}")
        self._sessions[peer] = Session(agreement, role, self._boot, boot)
        self._incarnations[peer] = agreement.incarnation
        self._bodies.pop(peer, None)

    def rejoin(self, incarnations: Mapping[str, int]) -> None:
        """All sessions that the disk remembers."""
        for peer, incarnation in incarnations.items():
            if peer == PARENT:
                self.join(peer, agree(self._name, incarnation), SealRole.CHILD)
            else:
                self.join(peer, agree(peer, incarnation), SealRole.PARENT)

    def tell(self, peer: str, message: Message) -> None:
        session = self._sessions.get(peer)
        if session is not None:
            for body in encode(message, self._codec, self._schemas.get(peer)):
                self._network.send(self._name, self._station.address(peer), session.seal(body))

    def _receive(self, address: str, datagram: bytes, arrived_at: int) -> None:
        sender = self._station.peer(address)
        session = self._sessions.get(sender)
        if session is None:
            return
        match session.open(datagram, self._clock.now):
            case Opened() as opened:
                self._take(sender, opened, self._clock.shown(arrived_at))
            case Greet() as greet:
                self._network.send(self._name, address, session.seal_hi(greet))
            case Reject():
                pass

    def _take(self, sender: str, opened: Opened, arrived_at: int) -> None:
        if opened.new_boot:
            self._saved[f"{sender}/{self._incarnations[sender]}"] = opened.boot
            self._bodies.pop(sender, None)
        if opened.type is DatagramType.HI:
            return
        if self._bodies.get(sender) == opened.body:
            self._deliver([Alive((sender,), arrived_at)])
            return
        message = decode(opened.body, self._codec, sender)
        assert isinstance(message, Message), message
        if opened.late and not message.updates and sender in self._bodies:
            return  # a hello that a later one overtook: nothing in it is news
        self._schemas[sender] = message.schema
        if opened.late:
            message = message.overtaken()
            self._bodies.pop(sender, None)
        else:
            self._bodies[sender] = opened.body
        self._deliver([Heard(sender, opened.boot, message, arrived_at)])
