"""One daemon of a world: a real engine on a seeded network and disk, that dies and comes back."""

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import MS, S
from haptera.core.state.side import PARENT, Side
from haptera.core.views.bus import Bus
from haptera.core.views.news import check_published
from haptera.core.views.texts import check_texts
from haptera.model.declared.remote_schema import told_schema
from haptera.model.effects import (
    Call,
    Errand,
    FetchList,
    FetchSchema,
    PlanReply,
    Publish,
    Recall,
    Reply,
    RequestRetry,
    SearchPlan,
    Start,
    Write,
)
from haptera.model.entity import EntityId
from haptera.model.events import (
    Answered,
    Asked,
    Enrolled,
    Event,
    Exited,
    HandedDown,
    Learnt,
    Listed,
    PlanFailed,
    Ready,
    Recalled,
    Ticked,
    WallClockSet,
    WatchReported,
)
from haptera.model.messages import Message
from haptera.model.parts import Context, Step
from haptera.runtime.performer import Performer, nobody
from haptera.testing.clock import Clock, MachineClock
from haptera.testing.disk import Disk
from haptera.testing.machine import Answer
from haptera.testing.network import Network
from haptera.testing.radio import Radio, Station
from haptera.testing.searching import searched
from haptera.testing.tape import UNTAPED, TapeEntry
from haptera.wire.updates import Codec

HELLO_S = 1
# What one question over TLS takes.
ASK_NS = 10 * MS
# What a search in a worker takes.
SEARCH_NS = 50 * MS
# The wall clock of all machines: their time began so long after 1970.
WALL_OFFSET_NS = 1_800_000_000 * S


class Device(Protocol):
    """Carries out what modules are asked to do: a machine, or a model of all there is."""

    def handle(self, call: Call, answer: Answer, died: Callable[[], None]) -> None:
        """Do what the module of this call would do with the real thing; it may die of it."""


class Surroundings(Protocol):
    """Everything around a process: a `World`. Without a `tape` nothing is recorded.

    In a `folded` one there are no agents: a parent runs their parts.
    """

    clock: Clock
    hello_ns: int
    wall_offset_ns: int
    folded: bool
    checked_every: int
    network: Network
    schema: int
    speaks: dict[int, str]
    clocks: dict[int, MachineClock]
    workers_killed: float

    @property
    def catalog(self) -> Catalog:
        """The kinds and parts that processes start with from now on."""

    @property
    def tape(self) -> list[TapeEntry] | None:
        """The tape of events and effects."""

    def process(self, name: str) -> "WorldProcess | None":
        """Another process, by its name on the network."""

    def machine_clock(self, name: str) -> MachineClock:
        """That of the machine on which a process of this name begins."""

    def device(self, entity: EntityId) -> Device:
        """The device that carries out calls for this entity."""


class WorldProcess:
    """One daemon: an engine that dies and is started again, with what its disk holds.

    `above` is the parent that an agent speaks with. `says` makes other messages of those that it
    would send: it was broken into, and has the key. A parent below another has its `name` on lists;
    `heed` hears of all entities that this life of it publishes. `clock` is its machine's.
    """

    def __init__(
        self, world: Surroundings, name: str, disk: Disk, node: str | None, above: str | None = None
    ) -> None:
        self.world = world
        self.clock = world.machine_clock(name)
        self.name = name
        self.disk = disk
        self.node = node
        self.above = above
        self.station = Station(name, above or PARENT)
        self.engine: Engine | None = None
        self.bus: Bus
        self.codec: Codec
        self.radio: Radio | None = None
        self.heed: Callable[[Iterable[EntityId]], None] = nobody
        self.replies: dict[int, Reply] = {}
        self.says: Callable[[Message], Message] | None = None
        self.turns = 0
        self.instance = self.boot = 0
        self._paused: list[Event] | None = None
        self._life = 0
        self._boots: dict[str, int] = {}
        self._modules: dict[str, int] = {}
        self._performer = Performer(
            call=self._call,
            cancel=nobody,  # its answer is dropped by the engine itself
            start=self._start,
            stop=nobody,
            write=self._write,
            keep=disk.keep,
            tell=self._tell,
            ask=self._ask,
            search=self._search,
            answer=self._reply,
            publish=self._publish,
        )

    def start(self) -> None:
        """Begin anew; only what is durable is there."""
        self._life += 1
        clock = self.world.clock
        context = Context.PARENT if self.node is None else Context.SELF
        instance = self.instance = clock.rng("instances").getrandbits(63) | 1
        draw = clock.rng(f"draw/{self.name}").random
        name = None if self.node is not None or self.name == PARENT else self.name
        self.world.clocks[instance] = self.clock
        hello_ns, boot = self.world.hello_ns, self.clock.boot
        side = Side(
            *(context, self.node, instance, boot, hello_ns, draw, name),
            folded=self.world.folded,
        )
        stored = self.disk.load()
        catalog = self.world.catalog
        self.codec = Codec(catalog.kinds.values(), self.world.schema)
        self._tune(instance)
        engine = Engine(side, catalog, stored, self.codec.schema, self.clock.now)
        self.engine = engine
        if self.node is None:
            engine.requests.take_up(self.disk.noted(), self.clock.now)
        if self.disk.promoted:
            self._succeed(engine)
        self.heed = nobody
        self.bus = Bus(f"{instance:x}", lambda: (row.id for row in engine.table))
        ahead_ns = clock.now - self.clock.now
        self.feed(self._life, [WallClockSet(self.world.wall_offset_ns + ahead_ns)])

    def _succeed(self, engine: Engine) -> None:
        """As a parent that was promoted does until its predecessor's steps are over."""
        steps = [one for one in self.world.catalog.parts() if isinstance(one, Step)]
        until = engine.safety.succeed(steps, self.clock.now)
        self._at(until, self.disk.outlive)

    def move(self, parent: str) -> None:
        """An agent speaks with another parent, by keys of their own."""
        self.above, self.station = parent, Station(self.name, parent)
        self.world.clock.happened["agent moved"] += 1
        incarnation = self.disk.incarnations[PARENT]
        self._boots.pop(f"{PARENT}/{incarnation}", None)
        self._tune(self.world.clock.rng("instances").getrandbits(63) | 1)
        self.deliver([Enrolled(PARENT, incarnation)])

    def _tune(self, boot: int) -> None:
        """Speak, as this boot, with all that there are sessions with; an agent that moves, anew."""
        life = self._life
        self.boot = boot
        self.world.speaks[boot] = self.name
        self.radio = Radio(
            self.station,
            boot,
            self.codec,
            self.clock,
            self.world.network,
            lambda events: self.feed(life, events),
            self._boots,
        )
        self.radio.rejoin(self.disk.incarnations)

    def rekey(self) -> None:
        """Go on with other keys: to its neighbours, as another process."""
        self.world.clock.happened["keys changed"] += 1
        self._tune(self.world.clock.rng("instances").getrandbits(63) | 1)

    def crash(self) -> None:
        """Gone, with its modules and all that it had not made durable."""
        self._life += 1
        self.engine = self._paused = None
        self.world.network.detach(self.name)

    def deliver(self, events: Iterable[Event]) -> None:
        """Something happened to this process, as it is now."""
        self.feed(self._life, events)

    def ask(self, request: HandedDown) -> None:
        """A person asks for this, and is answered that it will be done."""
        self.disk.note(request)
        self.deliver([request])

    def feed(self, life: int, events: Iterable[Event]) -> None:
        """One turn of the engine; what was meant for an earlier life is lost."""
        if self.engine is None or life != self._life:
            return
        if self._paused is not None:
            self._paused.extend(events)
            return
        self.turns += 1
        batch = list(events)
        effects = self.engine.handle(batch, self.clock.now)
        if self.turns % self.world.checked_every == 0:
            self.engine.check()
            check_texts(self.engine.table, self.clock.now)
            # What happened to an entity is announced once it was decided on.
            waits = self.engine.rounds.backlog.is_overdue
            check_published(one for one in self.engine.table if not waits(one.id))
        if self.world.tape is not None:
            self.world.tape.extend(
                TapeEntry(self.world.clock.now, self.name, self.instance, one)
                for one in (*batch, *effects)
                if not isinstance(one, UNTAPED)
            )
        self._performer.perform(effects)
        deadline = self.engine.deadline()
        if deadline is not None:
            self._at(deadline, self._tick, self._life, deadline)

    def _at(self, shown: int, function: Callable[..., None], *args: object) -> None:
        """Call the function when its machine's clock shows this."""
        clock = self.world.clock
        clock.after(self.clock.reaches(shown) - clock.now, function, *args)

    @property
    def awake(self) -> bool:
        """Whether it runs, and takes turns."""
        return self.engine is not None and self._paused is None

    def pause(self, seconds: float) -> None:
        """Stopped as by SIGSTOP: no turns and no writes, then all that happened meanwhile."""
        if self.engine is None or self._paused is not None:
            return
        self._paused = []
        self.world.clock.happened["process paused"] += 1
        delay_ns = int(seconds * S)
        self.disk.paused_until = self.world.clock.now + delay_ns
        self.world.network.hold(self.name)
        self.world.clock.after(delay_ns, self._resume, self._life)

    def _resume(self, life: int) -> None:
        if life != self._life or self._paused is None:
            return
        # The socket is drained into the inbox before the first turn.
        self.world.network.release(self.name)
        events, self._paused = self._paused, None
        self.feed(life, events or [Ticked()])

    def lose_module(self, module: str) -> None:
        """The module's process dies."""
        self.world.clock.happened["module killed"] += 1
        self.deliver([self._killed(module)])

    def _killed(self, module: str) -> Exited:
        return Exited(module, "was killed", self._modules.get(module, 1))

    def _tick(self, life: int, deadline: int) -> None:
        if self.engine is not None and life == self._life and self.engine.deadline() == deadline:
            self.feed(life, [Ticked()])

    def _call(self, call: Call) -> None:
        life, module = self._life, call.module
        if call.deadline_at is not None:
            deadline_at = self.clock.reaches(call.deadline_at)
            call = msgspec.structs.replace(call, deadline_at=deadline_at)
        self.world.device(call.entity).handle(
            call,
            lambda answer: self.feed(life, [self._dated(answer)]),
            lambda: self.feed(life, [self._killed(module)]),
        )

    def _dated(self, answer: Event) -> Event:
        """A machine's answer, with the time that a module would tell: by this machine's clock."""
        if isinstance(answer, Answered | WatchReported):
            return msgspec.structs.replace(answer, at=self.clock.shown(answer.at))
        return answer

    def _write(self, write: Write) -> None:
        life = self._life
        self.disk.submit(write, lambda done: self.feed(life, [done]))

    def _tell(self, peer: str, message: Message) -> None:
        assert self.radio is not None
        self.radio.tell(peer, message if self.says is None else self.says(message))

    def _start(self, start: Start) -> None:
        self._modules[start.module] = start.process
        ready = Ready(start.module, start.process)
        self.world.clock.after(5 * MS, self.feed, self._life, [ready])

    def _search(self, search: SearchPlan) -> None:
        self.world.clock.after(SEARCH_NS, self._answer, self._life, search)

    def _reply(self, answer: Reply | PlanReply) -> None:
        if isinstance(answer, Reply):
            self.replies[answer.ticket] = answer

    def _publish(self, news: Publish) -> None:
        self.bus.publish(news.entities, news.types)
        self.heed(news.entities)

    def _ask(self, errand: Errand) -> None:
        """What TLS does in life."""
        after = self.world.clock.after
        match errand:
            case FetchList(peer):
                after(ASK_NS, self._fetch_list, self._life, peer)
            case Recall(peer, entities):
                after(ASK_NS, self._recall, peer, entities)
            case RequestRetry(peer, entity):
                after(ASK_NS, self._urge, peer, entity)
            case FetchSchema(peer):
                after(ASK_NS, self._fetch_schema, self._life, peer)

    def _answer(self, life: int, search: SearchPlan) -> None:
        """What a worker does in life, unless it is killed."""
        world = self.world
        killed = world.clock.chance(f"search/{self.name}", "worker killed", world.workers_killed)
        event = PlanFailed(search.id, "killed by SIGKILL") if killed else searched(search)
        self.feed(life, [event])

    def _fetch_list(self, life: int, peer: str) -> None:
        """What TLS does in life: ask the other process, if there is one just now."""
        other, listed = self._reached(peer), Listed(peer, None)
        if other is not None and other.engine is not None:
            mark, versions = other.engine.neighbours.listed(self._known_as(other))
            listed = Listed(peer, other.boot, mark, tuple(versions))
        self.feed(life, [listed])

    def _fetch_schema(self, life: int, peer: str) -> None:
        other, told = self._reached(peer), None
        if other is not None and other.engine is not None:
            catalog, schema = other.engine.catalog, other.engine.neighbours.schema
            told = told_schema(schema, catalog.kinds.values(), catalog.schema)
            assert self.codec.learn(peer, told)
        self.feed(life, [Learnt(peer, told)])

    def _recall(self, peer: str, entities: tuple[EntityId, ...]) -> None:
        if (other := self._process(peer)) is not None:
            other.deliver([Recalled(self._known_as(other), entities)])

    def _urge(self, peer: str, entity: EntityId) -> None:
        if (other := self._process(peer)) is not None:
            other.deliver([Asked(entity)])

    def _process(self, peer: str) -> "WorldProcess | None":
        """The neighbour of this name, if there is one just now."""
        return self.world.process(self.station.address(peer))

    def _reached(self, peer: str) -> "WorldProcess | None":
        """The neighbour of this name, if it can be asked just now."""
        other = self._process(peer)
        cut = other is None or frozenset((self.name, other.name)) in self.world.network.cut
        return None if other is None or cut or not other.awake else other

    def _known_as(self, other: "WorldProcess") -> str:
        """How another process calls this one."""
        return PARENT if other.above == self.name else self.name
