"""The links to neighbours: changes at once, sent until held, hellos to repair what was lost."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, assert_never

from haptera.core.state.limits import MS, S
from haptera.core.state.side import Side, named
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.delta import Outgoing
from haptera.core.sync.lists import Lists
from haptera.core.sync.merge import Incoming
from haptera.core.sync.peers import PROBE_EVERY, SUSPECT_AFTER, Peer, Tier, phase_ns
from haptera.model.declared.remote_schema import OwnSchema, ToldSchema, differences
from haptera.model.effects import FetchSchema, Tell
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Alive, Heard, Learnt, Listed, Recalled
from haptera.model.messages import Ask, Mark, Measure, Message, Permit, RoomAsk, Update

# After so long a change is sent again to a neighbour that has not shown to hold it; then hellos do.
TELL_AGAIN_NS: Final = (250 * MS, 500 * MS, 1 * S, 1 * S, 2 * S)
# After how long a neighbour whose schema could not be fetched is asked for it again.
SCHEMA_AGAIN_NS: Final = 30 * S


class Spoken(NamedTuple):
    """What a side has to say of asks and permits to a neighbour."""

    asks: tuple[Ask, ...] = ()
    room_asks: tuple[RoomAsk, ...] = ()
    permits: tuple[Permit, ...] = ()


class Direction(StrEnum):
    """Where the neighbours are: what is desired comes from above, what is observed from below."""

    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Layers:
    """What passes on links in one direction: the layer that we send, and the one that we take."""

    direction: Direction
    outgoing: Outgoing
    incoming: Incoming

    def theirs(self, message: Message) -> Mark:
        """How far the layer has come that the message's sender is the source of."""
        return message.desired if self.direction is Direction.UP else message.observed

    def ours(self, message: Message) -> Mark:
        """How far the message's sender holds the layer that we send it."""
        return message.observed if self.direction is Direction.UP else message.desired

    def marks(self, peer: str) -> tuple[Mark, Mark]:
        """How far we hold what is desired, and what is observed."""
        ours, theirs = self.outgoing.mark(peer), self.incoming.mark(peer)
        return (theirs, ours) if self.direction is Direction.UP else (ours, theirs)


class Links:
    """The links to all neighbours: a parent's to agents, or an agent's to its parent.

    `spoken` tells what is to be said of asks and permits to a neighbour. `schema` stands for the
    kinds and parts that we plan with. `refused` counts by neighbour its reports on entities that
    are not its own.
    """

    def __init__(
        self,
        side: Side,
        timers: Timers,
        layers: Layers,
        schema: int,
        spoken: Callable[[str], Spoken] = lambda _: Spoken(),
    ) -> None:
        self._side = side
        self._timers = timers
        self._layers = layers
        self._outgoing, self._incoming = layers.outgoing, layers.incoming
        self._spoken = spoken
        self.schema = schema
        self._lists = Lists(timers, layers.incoming)
        self._peers: dict[str, Peer] = {}
        self.refused: Counter[str] = Counter()

    def __iter__(self) -> Iterator[Peer]:
        return iter(self._peers.values())

    def get(self, peer: str) -> Peer | None:
        return self._peers.get(peer)

    def agrees(self, name: str) -> bool:
        """Whether a neighbour that is there plans with the same kinds and parts as we do."""
        peer = self._peers.get(name)
        if peer is None or peer.tier is Tier.LOST:
            return True
        return peer.schema in (None, self.schema)

    def join(self, now: int, name: str, incarnation: int) -> None:
        """This neighbour has a session: send it hellos, and listen for its own."""
        self._peers[name] = Peer(name, incarnation, silent_since=now)
        hello_ns = self._side.hello_ns
        self._timers.set(("hello", name), now + phase_ns(name, hello_ns))
        self._timers.set(("tier", name), now + SUSPECT_AFTER * hello_ns // 10)

    def greet(self, name: str, at: int) -> None:
        """Ask this neighbour for a hello then, if it was not heard before."""
        self._timers.set(("greet", name), at)

    def part(self, name: str) -> None:
        """This neighbour is another's: no hellos, and no silence of its own."""
        if self._peers.pop(name, None) is not None:
            for what in ("hello", "greet", "tier", "tell", "list", "schema"):
                self._timers.drop((what, name))

    def heard(self, turn: Turn, event: Heard) -> None:
        """Take over what a neighbour says, and answer where it lacks something."""
        peer = self._peers.get(event.peer)
        if peer is None:
            return
        message, name = event.message, event.peer
        theirs = self._layers.theirs(message)
        if peer.boot != event.boot:
            peer.boot, peer.asks, peer.room_asks, peer.permits = event.boot, (), (), ()
            peer.layers.tells = 0  # what was sent to its predecessor
            self._incoming.unconfirm(name, theirs.epoch)
        elif theirs.epoch != self._incoming.epoch:
            self._incoming.unconfirm(name, theirs.epoch)
        own = [one for one in message.updates if self._incoming.concerns(name, one)]
        if len(own) < len(message.updates):
            self.refused[name] += len(message.updates) - len(own)
        self._incoming.merge(turn, own, event)
        self._compare(turn, peer, theirs)
        peer.layers.said, peer.probed = self._layers.ours(message), message.probe
        self._note_schema(turn, peer, message.schema)
        peer.hears(message)
        self._alive(turn, peer, event.arrived_at)

    def differs_over(self, name: str, kind: str, ours: OwnSchema) -> str | None:
        """In what a neighbour plans entities of a kind otherwise than we do, as far as it said."""
        if self.agrees(name):
            return None
        told = self._peers[name].told_schema
        if told is None:
            return f"{named(name)} runs other modules"
        return differences(kind, ours, told, named(name))

    def handle(self, turn: Turn, event: Alive | Listed | Learnt | Recalled) -> None:
        """A neighbour says what it last said, answers what it was asked, or lacks some of ours."""
        match event:
            case Alive(peers, arrived_at):
                self.alive(turn, peers, arrived_at)
            case Listed():
                self.take_list(turn, event)
            case Learnt(peer, schema):
                self._learn(turn, peer, schema)
            case Recalled(peer, entities):
                self.recall(turn, peer, entities)
            case _:
                assert_never(event)

    def wake(self, turn: Turn, what: str, name: str) -> None:
        """A timer of this neighbour's went off."""
        match what:
            case "hello":
                self.say_hello(turn, name)
            case "greet":
                self._greet(turn, name)
            case "tell":
                self.tell_again(turn, name)
            case "list":
                self.ask_list(turn, name)
            case "schema":
                self._fetch_schema(turn, name)
            case _:
                raise AssertionError(what)

    def alive(self, turn: Turn, names: Iterable[str], at: int) -> None:
        """These neighbours said again what they last said."""
        for name in names:
            peer = self._peers.get(name)
            if peer is not None:
                self._alive(turn, peer, at)

    def listed(self, name: str) -> tuple[Mark, list[tuple[EntityId, int]]]:
        """All that counts in the layer that we send this neighbour, and its mark."""
        return self._outgoing.mark(name), sorted(self._outgoing.versions(name).items())

    def ask_list(self, turn: Turn, name: str) -> None:
        """The timer of a difference went off."""
        peer = self._peers.get(name)
        if peer is not None:
            self._lists.ask(turn, peer)

    def take_list(self, turn: Turn, listed: Listed) -> None:
        """A list that was asked for is there, or cannot be had."""
        peer = self._peers.get(listed.peer)
        if peer is not None:
            self._lists.handle(turn, peer, listed)

    def recall(self, turn: Turn, name: str, entities: Iterable[EntityId]) -> None:
        """A neighbour lacks these, whatever it said to hold."""
        peer = self._peers.get(name)
        if peer is not None:
            ours = self._outgoing.versions(name)
            peer.layers.recalled.update(one for one in entities if one in ours)
            peer.layers.tells = 0
            self._tell(turn, peer)

    def _note_schema(self, turn: Turn, peer: Peer, schema: int) -> None:
        """Ask for a schema that is not ours, once; and again where it could not be had."""
        if peer.schema != schema:
            peer.schema, peer.told_schema, peer.sought = schema, None, False
        if not peer.sought:  # ours may change, too
            self._fetch_schema(turn, peer.name)

    def _fetch_schema(self, turn: Turn, name: str) -> None:
        peer = self._peers.get(name)
        if peer is not None and peer.schema != self.schema and peer.told_schema is None:
            peer.sought = True
            turn.effects.append(FetchSchema(name))
            self._timers.set(("schema", name), turn.now + SCHEMA_AGAIN_NS)

    def _learn(self, turn: Turn, name: str, schema: ToldSchema | None) -> None:
        peer = self._peers.get(name)
        if peer is not None and schema is not None and schema.digest == peer.schema:
            peer.told_schema = schema
            turn.dirty.update(self._incoming.entities(name))

    def tell_changes(self, turn: Turn, names: Iterable[str]) -> None:
        """What we send to these neighbours changed: tell at once."""
        for name in sorted(names):
            peer = self._peers.get(name)
            if peer is not None:
                peer.layers.tells = 0
                self._tell(turn, peer)

    def say_hello(self, turn: Turn, name: str) -> None:
        """The timer of this neighbour's next hello went off."""
        peer = self._peers.get(name)
        if peer is not None:
            turn.effects.append(Tell(name, self._message(turn, peer, after=None)))
            self._timers.set(("hello", name), turn.now + self._side.hello_ns)

    def _greet(self, turn: Turn, name: str) -> None:
        peer = self._peers.get(name)
        if peer is not None and peer.heard_at is None:
            self.probe(turn, name)

    def probe(self, turn: Turn, name: str) -> None:
        """Ask this neighbour for a hello at once."""
        peer = self._peers.get(name)
        if peer is not None:
            turn.effects.append(Tell(name, self._message(turn, peer, after=None, probe=True)))

    def tell_again(self, turn: Turn, name: str) -> None:
        """The timer by which a neighbour should have shown to hold a change went off."""
        peer = self._peers.get(name)
        if peer is None:
            return
        if peer.tier is Tier.LOST or self._settled(peer):
            peer.layers.tells = 0
        else:
            self._tell(turn, peer)

    def check_tier(self, turn: Turn, name: str) -> None:
        """The timer of a neighbour's silence went off: suspect it, probe it, or lose it."""
        peer = self._peers.get(name)
        if peer is None:
            return
        hello_ns, before = self._side.hello_ns, peer.tier
        match peer.grow_silent(turn.now, hello_ns):
            case Tier.FRESH:
                suspect_at = peer.silent_since + SUSPECT_AFTER * hello_ns // 10
                self._timers.set(("tier", name), max(suspect_at, turn.now + 1))
            case Tier.SUSPECT:
                if before is Tier.FRESH:
                    self._incoming.doubt(turn, name)
                self.probe(turn, name)
                self._timers.set(("tier", name), turn.now + PROBE_EVERY * hello_ns // 10)
            case Tier.LOST:
                self._incoming.lose(turn, name)

    def forgive(self, lag_ns: int) -> None:
        """We did not listen for so long: that is nobody's silence."""
        for peer in self._peers.values():
            peer.silent_since += lag_ns

    def _alive(self, turn: Turn, peer: Peer, at: int) -> None:
        suspect = peer.tier is Tier.SUSPECT
        back = peer.heard(at)
        if suspect:
            self._incoming.doubt(turn, peer.name)
        suspect_at = at + SUSPECT_AFTER * self._side.hello_ns // 10
        if back:
            self._incoming.resume(turn, peer.name)
            self._timers.set(("tier", peer.name), suspect_at)
        else:
            self._timers.postpone(("tier", peer.name), suspect_at)
            if peer.disbelieved:
                turn.dirty.add(node_id(peer.name))
        if self._settled(peer):
            self._timers.drop(("tell", peer.name))
            peer.layers.tells = 0
        elif peer.layers.tells == 0 or back:
            # Else the timer does: one that never settles must not be answered at its own speed.
            self._tell(turn, peer)
        if peer.probed:
            turn.effects.append(Tell(peer.name, self._message(turn, peer, after=None)))

    def _settled(self, peer: Peer) -> bool:
        """Whether it holds our layer, and has answered all that it is asked and nothing else."""
        return self._holds(peer) and self._answered(peer)

    def _answered(self, peer: Peer) -> bool:
        spoken = self._spoken(peer.name)
        asked = {one.id for one in spoken.asks} | {one.id for one in spoken.room_asks}
        return asked == {one.id for one in peer.permits}

    def _holds(self, peer: Peer) -> bool:
        """Whether it said that it holds our layer as it is; remembered as the last good version."""
        layers, mark = peer.layers, self._outgoing.mark(peer.name)
        if (layers.said.epoch, layers.said.digest) != (mark.epoch, mark.digest):
            if layers.said.version < layers.acked or layers.said.epoch != mark.epoch:
                layers.acked = 0
            return False
        layers.acked = mark.version
        layers.recalled.clear()
        return True

    def _tell(self, turn: Turn, peer: Peer) -> None:
        self._holds(peer)
        probe = not self._answered(peer)
        turn.effects.append(
            Tell(peer.name, self._message(turn, peer, after=peer.layers.acked, probe=probe))
        )
        wait_ns = TELL_AGAIN_NS[min(peer.layers.tells, len(TELL_AGAIN_NS) - 1)]
        peer.layers.tells += 1
        self._timers.set(("tell", peer.name), turn.now + wait_ns)

    def _compare(self, turn: Turn, peer: Peer, theirs: Mark) -> None:
        """Whether we hold the neighbour's layer; if not, though we hold its latest change, ask.

        An earlier version is one that a later message has overtaken, and says nothing of now.
        """
        ours = self._incoming.mark(peer.name)
        if theirs.digest == ours.digest:
            self._lists.agree(peer)
            self._incoming.settle(turn, peer.name)
        elif theirs.version == ours.version:
            self._lists.differ(turn, peer)
        else:
            self._lists.overtaken(peer)

    def _message(
        self, turn: Turn, peer: Peer, *, after: int | None, probe: bool = False
    ) -> Message:
        """A hello; with the changes after a version where one is given."""
        updates: tuple[Update, ...] = ()
        measures: tuple[Measure, ...] = ()
        if after is not None:
            updates = self._outgoing.updates(peer.name, after, turn.now, peer.layers.recalled)
            measures = self._outgoing.measures(after)
        desired, observed = self._layers.marks(peer.name)
        spoken = self._spoken(peer.name)
        return Message(
            peer.incarnation,
            0,
            self.schema,
            desired,
            observed,
            updates=updates,
            probe=probe,
            asks=spoken.asks,
            permits=spoken.permits,
            room_asks=spoken.room_asks,
            reads=peer.told_schema is not None,
            measures=measures,
        )
