"""A network with seeded loss, copies, delays and cuts."""

from collections.abc import Callable
from dataclasses import dataclass

from haptera.testing.clock import Clock

# Takes who sent a datagram, its bytes, and when it arrived, as a kernel notes it.
Receiver = Callable[[str, bytes, int], None]
MS = 1_000_000
SOCKET_DATAGRAMS_MAX = 200


@dataclass
class NetworkFaults:
    """How badly the network behaves; shares of datagrams, between 0 and 1."""

    loss: float = 0.0
    copies: float = 0.0
    late: float = 0.0


class Network:
    """Carries bytes between named ends; `cut` holds pairs that do not reach each other."""

    def __init__(self, clock: Clock, faults: NetworkFaults) -> None:
        self.faults = faults
        self.cut: set[frozenset[str]] = set()
        self._clock = clock
        self._ends: dict[str, Receiver] = {}
        self._held: dict[str, list[tuple[str, bytes, int]]] = {}

    def attach(self, name: str, receive: Receiver) -> None:
        """Datagrams to this name go there from now on."""
        self._ends[name] = receive

    def detach(self, name: str) -> None:
        self._ends.pop(name, None)
        self._held.pop(name, None)

    def hold(self, name: str) -> None:
        """Nobody reads this name's socket: what arrives waits there, as much as it holds."""
        self._held.setdefault(name, [])

    def release(self, name: str) -> None:
        """Its socket is read again."""
        for held in self._held.pop(name, []):
            self._hand_over(name, *held)

    def send(self, sender: str, receiver: str, datagram: bytes) -> None:
        """Deliver after a while: once, twice or never."""
        rng = self._clock.rng("network")
        if frozenset((sender, receiver)) in self.cut or self._chance("lost", self.faults.loss):
            return
        for _ in range(2 if self._chance("copied", self.faults.copies) else 1):
            slow = self._chance("late", self.faults.late)
            delay_ns = rng.randrange(1000, 10_000) * MS if slow else rng.randrange(1, 30) * MS
            self._clock.after(delay_ns, self._deliver, sender, receiver, datagram)

    def _chance(self, fate: str, share: float) -> bool:
        return self._clock.chance("network", f"datagram {fate}", share)

    def _deliver(self, sender: str, receiver: str, datagram: bytes) -> None:
        if (held := self._held.get(receiver)) is not None:
            if len(held) < SOCKET_DATAGRAMS_MAX:
                held.append((sender, datagram, self._clock.now))
            return
        self._hand_over(receiver, sender, datagram, self._clock.now)

    def _hand_over(self, receiver: str, sender: str, datagram: bytes, arrived_at: int) -> None:
        receive = self._ends.get(receiver)
        if receive is not None:
            receive(sender, datagram, arrived_at)
