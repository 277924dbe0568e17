"""Two ends of a link over a bad network: each layer reaches the other side, whatever is lost."""

from dataclasses import dataclass, field
from random import Random

import pytest

from haptera.core.state.limits import MS, S
from haptera.core.state.side import PARENT, Side
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.state.typical_durations import LAST_MAX, Usual
from haptera.core.sync.delta import GONE_MAX, DesiredOut, ObservedOut
from haptera.core.sync.links import Direction, Layers, Links
from haptera.core.sync.merge import DesiredIn, ObservedIn
from haptera.core.sync.node_scope import NodeScope
from haptera.core.sync.peers import Tier
from haptera.kinds import KINDS
from haptera.model.changes import Declare, SetDesired, StoredEntity, Undeclare
from haptera.model.effects import FetchList, Recall, Tell
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Heard, Listed
from haptera.model.facts import Fact, Method
from haptera.model.messages import DesiredUpdate, Mark, Message
from haptera.model.parts import Context

NODE = "n01"
SERVICES = [EntityId("service", name, NODE) for name in ("web", "db", "log")]
# Told to every node, and the whole cluster's but the parent's own business.
EVERYWHERE = [EntityId("freeze", "f1", None), EntityId("policy", "p1", None)]
APART = EntityId("roll", "r1", None)
DATUM = {"service": "port", "freeze": "until_s", "policy": "rank", "roll": "canary"}
PARENTS = {("node", "power"), ("node", "agent")}
AGENTS = {("service", "run"), ("service", "applied")}


@dataclass
class End:
    """One side: its table, its link, and what it has sent but not yet handed over."""

    node: str | None
    boot: int = 0
    table: EntityTable = field(default_factory=lambda: EntityTable(KINDS))
    sent: list[Message] = field(default_factory=list)
    errands: list[FetchList | Recall] = field(default_factory=list)

    def start(self, now: int, boot: int, epoch: int, kept: list[StoredEntity]) -> None:
        self.boot, self.table, self.timers = boot, EntityTable(KINDS), Timers()
        for one in kept:
            self.table.load(one)
            self.table.revision = max(self.table.revision, one.revision)
        context = Context.PARENT if self.node is None else Context.SELF
        side = Side(context, self.node, boot, "test", S)
        if self.node is None:
            self.desired = DesiredOut(self.table, epoch)
            layers = Layers(Direction.DOWN, self.desired, ObservedIn(self.table, PARENTS))
        else:
            self.usual = Usual()
            scope = NodeScope(self.table, self.node, AGENTS)
            self.observed = ObservedOut(scope, self.usual)
            self.incoming = DesiredIn(self.table, epoch, scope)
            layers = Layers(Direction.UP, self.observed, self.incoming)
        self.links = Links(side, self.timers, layers, 1)
        self.links.join(now, PARENT if self.node else NODE, 1)

    def wake(self, now: int) -> None:
        turn = Turn(now)
        for key in self.timers.due(now):
            match key:
                case ("hello", str(name)):
                    self.links.say_hello(turn, name)
                case ("tell", str(name)):
                    self.links.tell_again(turn, name)
                case ("tier", str(name)):
                    self.links.check_tier(turn, name)
                case ("list", str(name)):
                    self.links.ask_list(turn, name)
        self.take(turn)

    def take(self, turn: Turn) -> None:
        for effect in turn.effects:
            if isinstance(effect, Tell):
                self.sent.append(effect.message)
            elif isinstance(effect, FetchList | Recall):
                self.errands.append(effect)

    def desired_layer(self) -> dict[EntityId, tuple[dict[str, str | int], dict[str, str]]]:
        return {
            row.id: (
                {name: one.value for name, one in row.desired.values.items()},
                row.desired.attributes,
            )
            for row in self.table
            if not row.desired.leaving and row.id != APART
        }

    def observed_layer(self) -> dict[EntityId, dict[str, tuple[str, str | None]]]:
        rows = [row for row in self.table if not row.desired.leaving]
        layer = {row.id: row.belief.known if self.node else row.report.facts for row in rows}
        return {
            entity: {name: (fact.value, fact.note) for name, fact in facts.items()}
            for entity, facts in layer.items()
            if facts
        }


class Pair:
    """A parent and an agent, and a network that loses, copies and reorders between them.

    `mute` is the share of questions over TLS that come to nothing. `lists` counts
    the lists asked for, `told` holds all that was told of, `heard` what arrived.
    """

    def __init__(self, seed: int, loss: float, mute: float = 0.3) -> None:
        self.rng, self.loss, self.now = Random(seed), loss, S
        self.mute, self.lists = mute, 0
        self.told: set[EntityId] = set()
        self.heard: list[Message] = []
        self.parent, self.agent = End(None), End(NODE)
        self.revision = 0
        self.flying: list[tuple[int, End, int, Message]] = []
        self.parent.start(self.now, 1, 5, [])
        self.agent.start(self.now, 1, 0, [])
        self.write(Declare(node_id(NODE), {}, "site"))

    def run(self, until_ns: int) -> None:
        while self.now < until_ns:
            self.now += 10 * MS
            for end in (self.parent, self.agent):
                end.wake(self.now)
            self.carry()

    def carry(self) -> None:
        for sender, receiver in ((self.parent, self.agent), (self.agent, self.parent)):
            for errand in sender.errands:
                self.run_errand(sender, receiver, errand)
            sender.errands = []
            for message in sender.sent:
                self.told.update(update.entity for update in message.updates)
                for _ in range(2 if self.rng.random() < 0.1 else 1):
                    if self.rng.random() >= self.loss:
                        at = self.now + self.rng.randrange(1, 40) * MS
                        self.flying.append((at, receiver, sender.boot, message))
            sender.sent = []
        arrived = [one for one in self.flying if one[0] <= self.now]
        self.flying = [one for one in self.flying if one[0] > self.now]
        for _, receiver, boot, message in arrived:
            sender = self.parent if receiver is self.agent else self.agent
            if boot == sender.boot:  # what an earlier process sealed is refused below this layer
                self.heard.append(message)
                turn = Turn(self.now)
                name = PARENT if receiver is self.agent else NODE
                receiver.links.heard(turn, Heard(name, boot, message, self.now))
                receiver.take(turn)

    def run_errand(self, asker: End, asked: End, errand: FetchList | Recall) -> None:
        turn, heard = Turn(self.now), self.rng.random() >= self.mute
        me = NODE if asked is self.parent else PARENT
        match errand:
            case FetchList(peer):
                self.lists += 1
                listed = Listed(peer, None)
                if heard:
                    mark, versions = asked.links.listed(me)
                    listed = Listed(peer, asked.boot, mark, tuple(versions))
                asker.links.take_list(turn, listed)
                asker.take(turn)
            case Recall(_, entities) if heard:
                asked.links.recall(turn, me, entities)
                asked.take(turn)

    def write(self, change: Declare | SetDesired | Undeclare) -> None:
        self.revision += 1
        entity = self.parent.table.apply(change, self.revision)
        assert entity is not None
        self.parent.desired.changed(entity, self.revision)
        turn = Turn(self.now)
        self.parent.links.tell_changes(turn, self.parent.desired.take_changed())
        self.parent.take(turn)

    def see(self, entity: EntityId, value: str, more: str = "") -> None:
        row = self.agent.table.get(entity)
        if row is not None:
            fact = Fact(value, "service", Method.READ, self.now, 0, f"it is {value}{more}")
            row.belief.learn("run", fact)
            turn = Turn(self.now)
            if self.agent.observed.changed(row):
                self.agent.links.tell_changes(turn, (PARENT,))
            self.agent.take(turn)

    def restart_parent(self) -> None:
        self.parent.start(self.now, self.parent.boot + 1, 5, list(self.parent.table.stored()))

    def restart_agent(self, *, keeping: bool) -> None:
        kept = list(self.agent.table.stored()) if keeping else []
        epoch = self.agent.incoming.epoch if keeping else 0
        self.agent.start(self.now, self.agent.boot + 1, epoch, kept)

    def meddle(self) -> None:
        entity = self.rng.choice([*SERVICES, *EVERYWHERE, APART])
        here = self.parent.table.get(entity) is not None
        match self.rng.randrange(8):
            case 0:
                self.restart_parent()
            case 1:
                self.restart_agent(keeping=self.rng.random() < 0.7)
            case 2 | 3 if not here:
                attributes = {"rack": str(self.rng.randrange(3))} if entity.node else {}
                self.write(Declare(entity, attributes, "site"))
            case 2 if here:
                self.write(Undeclare(entity))
            case 4 | 5 if here:
                self.write(SetDesired(entity, DATUM[entity.kind], self.rng.randrange(9), "site"))
            case _ if entity.node:
                self.see(entity, self.rng.choice(["running", "stopped", "failed"]))


@pytest.mark.parametrize("seed", range(40))
def test_both_layers_arrive_whatever_is_lost_and_whoever_restarts(seed: int) -> None:
    pair = Pair(seed, loss=0.4)
    for _ in range(60):
        pair.meddle()
        pair.run(pair.now + pair.rng.randrange(0, 700) * MS)
    pair.loss = 0.0
    pair.run(pair.now + 12 * S)
    for entity in SERVICES:
        pair.see(entity, "running")
    pair.run(pair.now + 3 * S)

    assert pair.agent.desired_layer() == pair.parent.desired_layer()
    assert pair.parent.observed_layer() == pair.agent.observed_layer()
    assert pair.agent.table.get(APART) is None


def test_a_note_is_told_with_its_value_and_is_no_news_alone() -> None:
    """Else a note that differs at each look would be told at each."""
    pair = Pair(seed=1, loss=0.0)
    web = SERVICES[0]
    pair.write(Declare(web, {}, "site"))
    pair.run(pair.now + S)
    noted = {web: {"run": ("failed", "it is failed: status 3")}}

    pair.see(web, "failed", ": status 3")
    pair.run(pair.now + S)
    assert pair.parent.observed_layer() == noted

    pair.see(web, "failed", ": status 4")
    pair.run(pair.now + S)
    assert pair.parent.observed_layer() == noted

    pair.see(web, "running")
    pair.run(pair.now + S)
    assert pair.parent.observed_layer() == {web: {"run": ("running", "it is running")}}


def test_a_measure_is_told_beside_a_change_and_anew_only_where_it_is_notably_another() -> None:
    pair = Pair(1, loss=0.0)
    pair.write(Declare(SERVICES[0], {}, "site"))
    pair.run(pair.now + 5 * S)
    told = list[list[int]]()
    for number, took in enumerate((100, 101, 900, 900)):
        for _ in range(LAST_MAX):
            pair.agent.usual.took("service.start", took * MS)
        pair.see(SERVICES[0], f"value {number}")
        told.append([one.usual_ms for message in pair.agent.sent for one in message.measures])
        pair.run(pair.now + 5 * S)
    assert told == [[100], [], [900], []]


def test_a_measure_is_told_until_it_is_held_and_to_a_new_parent_again() -> None:
    pair = Pair(1, loss=0.0)
    pair.write(Declare(SERVICES[0], {}, "site"))
    pair.run(pair.now + 5 * S)
    pair.loss = 1.0
    pair.agent.usual.took("service.start", 100 * MS)
    pair.see(SERVICES[0], "running")
    pair.run(pair.now + 2 * S)
    pair.loss = 0.0
    assert measured(pair, 2 * S) == {"service.start"}
    assert measured(pair, 5 * S) == set()
    pair.restart_parent()
    assert measured(pair, 5 * S) == {"service.start"}


def measured(pair: Pair, for_ns: int) -> set[str]:
    """The parts of which the parent hears in this time."""
    pair.heard.clear()
    pair.run(pair.now + for_ns)
    return {one.part for message in pair.heard for one in message.measures}


@pytest.mark.parametrize("entity", [SERVICES[0], EVERYWHERE[0]], ids=str)
def test_a_change_is_told_at_once_and_not_again_once_it_is_held(entity: EntityId) -> None:
    pair = Pair(1, loss=0.0)
    pair.run(pair.now + 5 * S)
    pair.write(Declare(entity, {}, "site"))

    assert [len(message.updates) for message in pair.parent.sent] == [1]
    pair.run(pair.now + 100 * MS)
    assert pair.agent.desired_layer() == pair.parent.desired_layer()
    pair.run(pair.now + 200 * MS)
    pair.parent.sent.clear()
    pair.parent.wake(pair.now + 10 * S)
    assert [message.updates for message in pair.parent.sent if message.updates] == []


def test_a_new_process_of_a_neighbour_is_told_at_once_whatever_its_predecessor_was_told() -> None:
    pair = Pair(1, loss=0.0)
    pair.write(Declare(SERVICES[0], {}, "site"))
    pair.run(pair.now + 5 * S)
    pair.loss = 1.0
    pair.see(SERVICES[0], "running")
    pair.run(pair.now + 100 * MS)
    pair.restart_parent()
    turn = Turn(pair.now)
    hello = Message(1, 0, 1, pair.parent.desired.mark(NODE), Mark(), probe=True)
    pair.agent.links.heard(turn, Heard(PARENT, pair.parent.boot, hello, pair.now))

    told = [one.message.updates for one in turn.effects if isinstance(one, Tell)]
    assert {update.entity for some in told for update in some} >= {SERVICES[0]}


def test_what_is_read_late_says_no_more_than_what_was_so_when_it_arrived() -> None:
    pair = Pair(1, loss=0.0)
    pair.run(pair.now + 5 * S)
    peer, arrived_at, now = pair.parent.links.get(NODE), pair.now, pair.now + 10 * S
    assert peer is not None
    hello = Message(1, 0, 1, Mark(), pair.agent.observed.mark(PARENT))

    pair.parent.links.heard(Turn(now), Heard(NODE, pair.agent.boot, hello, arrived_at))
    assert (peer.heard_at, peer.fresh(now, S)) == (arrived_at, False)


def test_silence_makes_a_neighbour_suspect_then_lost_and_its_hello_brings_it_back() -> None:
    pair = Pair(2, loss=0.0)
    pair.run(pair.now + 3 * S)
    pair.loss = 1.0
    tiers = []
    for _ in range(60):
        pair.run(pair.now + 100 * MS)
        peer = pair.parent.links.get(NODE)
        assert peer is not None
        tiers.append(peer.tier)
    assert sorted(set(tiers), key=tiers.index) == [Tier.FRESH, Tier.SUSPECT, Tier.LOST]
    pair.loss = 0.0
    pair.run(pair.now + 1_200 * MS)
    assert peer.tier is Tier.FRESH


def test_what_is_told_everywhere_makes_each_node_be_told_and_nothing_else_of_the_cluster_does() -> (
    None
):
    table = EntityTable(KINDS)
    out = DesiredOut(table, 5)

    def write(*changes: Declare | Undeclare) -> set[str]:
        for change in changes:
            table.apply(change, table.revision + 1)
            out.changed(change.entity, table.revision)
        return out.take_changed()

    nodes = [Declare(node_id(name), {}, "site") for name in ("n1", "n2")]
    assert write(*nodes) == {"n1", "n2"}
    before = [out.mark(name) for name in ("n1", "n2", "unheard-of")]
    assert write(Declare(APART, {}, "site")) == set()
    assert [out.mark(name) for name in ("n1", "n2", "unheard-of")] == before

    assert write(Declare(EVERYWHERE[0], {}, "user:eve")) == {"n1", "n2"}
    assert [out.mark(name).version for name in ("n1", "n2", "unheard-of")] == [4, 4, 4]
    assert [one.entity for one in out.updates("n2", 2, 0)] == [EVERYWHERE[0]]
    assert write(Undeclare(EVERYWHERE[0])) == {"n1", "n2"}
    assert out.updates("n1", 4, 0) == (DesiredUpdate(EVERYWHERE[0], 5, {}, {}, gone=True),)


def test_an_agent_that_missed_more_than_is_still_told_forgets_all_that_is_gone() -> None:
    pair = Pair(3, loss=0.0)
    freezes = [EntityId("freeze", f"f{number}", None) for number in range(2 * GONE_MAX)]
    for freeze in freezes:
        pair.write(Declare(freeze, {}, "user:eve"))
    pair.run(pair.now + 5 * S)
    assert pair.agent.desired_layer() == pair.parent.desired_layer()
    pair.loss = 1.0
    for freeze in freezes:
        pair.write(Undeclare(freeze))
    pair.run(pair.now + 20 * S)
    pair.loss = 0.0
    pair.run(pair.now + 5 * S)

    assert list(pair.agent.desired_layer()) == [node_id(NODE)]
    told = pair.parent.desired.updates(NODE, 1 + len(freezes), 0)
    assert [one.entity for one in told] == freezes[-GONE_MAX:]
