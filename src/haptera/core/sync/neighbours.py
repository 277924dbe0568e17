"""The neighbours of an engine: an agent's link to its parent, or a parent's to its agents."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from haptera.core.state.limits import MS
from haptera.core.state.side import PARENT, Side
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.state.typical_durations import Usual
from haptera.core.sync.arrivals import Arrivals
from haptera.core.sync.charge import Charge
from haptera.core.sync.delta import ObservedOut
from haptera.core.sync.downlink import SyncDownlink
from haptera.core.sync.links import Links, Spoken
from haptera.core.sync.merge import DesiredIn
from haptera.core.sync.node_scope import NodeScope
from haptera.core.sync.peers import Peer
from haptera.core.sync.reports import Reports
from haptera.core.sync.uplink import SyncUplink
from haptera.model.declared.remote_schema import OwnSchema
from haptera.model.entity import EntityId
from haptera.model.events import Alive, Heard, Learnt, Listed, Recalled, Reported, Silenced
from haptera.model.messages import Mark, Permit

# A tick that comes later than this past its time is a pause in our own listening.
LAG_MAX_NS: Final = 250 * MS


class Neighbours:
    """An agent has an uplink, a parent a downlink.

    `here` is what this side looks at itself; `spoken` what it has to say of asks and permits.
    `usual` is how long parts take, which an agent tells its parent.
    """

    def __init__(
        self,
        side: Side,
        table: EntityTable,
        timers: Timers,
        here: set[tuple[str, str]],
        epoch: int,
        schema: int,
        spoken: Callable[[str], Spoken],
    ) -> None:
        self._table = table
        self._timers = timers
        self._hello_ns = side.hello_ns
        self.usual = Usual()
        self.down: SyncDownlink | None = None
        self.up: SyncUplink | None = None
        if side.node is None:
            self.down = SyncDownlink(side, table, timers, here, epoch, schema, spoken)
            self._arrivals = Arrivals(side, table, self.down, here)
            self.links: Links = self.down.links
        else:
            scope = NodeScope(table, side.node, here)
            desired, observed = DesiredIn(table, epoch, scope), ObservedOut(scope, self.usual)
            self.up = SyncUplink(side, timers, desired, observed, schema, spoken)
            self.links = self.up.links

    def __iter__(self) -> Iterator[Peer]:
        return iter(self.links)

    def peer(self, name: str) -> Peer | None:
        return self.links.get(name)

    @property
    def parent(self) -> Peer | None:
        """An agent's parent, where there is a link to it that was made."""
        return None if self.up is None else self.up.links.get(PARENT)

    @property
    def schema(self) -> int:
        """Stands for the kinds and parts that this side plans with."""
        return self.links.schema

    def replan(self, schema: int) -> None:
        """Plan with other kinds and parts; neighbours hear of it."""
        self.links.schema = schema

    @property
    def refused(self) -> Counter[str]:
        """By neighbour, its reports on entities that are not its own."""
        reports = self.reports
        return self.links.refused if reports is None else self.links.refused + reports.refused

    def keeps(self, node: str | None) -> bool:
        """Whether what is on this node is decided on here."""
        return self.down is None or self.down.charge.keeps(node)

    def listed(self, name: str) -> tuple[Mark, list[tuple[EntityId, int]]]:
        """All that counts in the layer that we send this neighbour, and its mark."""
        return self.links.listed(name)

    def load(self, incarnations: Mapping[str, int], now: int) -> None:
        """Those with sessions."""
        if self.down is not None:
            self._arrivals.load(incarnations, now)
            return
        for name, incarnation in incarnations.items():
            self.links.join(now, name, incarnation)

    def enrolled(self, turn: Turn, name: str, incarnation: int) -> None:
        """A neighbour has a new session."""
        if self.down is None:
            self.links.join(turn.now, name, incarnation)
        else:
            self._arrivals.enrolled(turn, name, incarnation)

    def heard(self, turn: Turn, event: Heard) -> None:
        """Take over what a neighbour says."""
        if self.down is not None:
            self._arrivals.meet(turn, event)
        self.links.heard(turn, event)

    def handle(self, turn: Turn, event: Alive | Listed | Learnt | Recalled) -> None:
        """A neighbour says what it last said, answers what it was asked, or lacks some of ours."""
        self.links.handle(turn, event)

    def report(self, turn: Turn, event: Reported | Silenced) -> None:
        """A parent below reports, or has not for too long."""
        assert self.down is not None, "nobody reports to an agent"
        self.down.reports.receive(turn, event)
        if isinstance(event, Silenced):
            self.down.below.silence(event.parent)
        else:
            self.down.below.receive(event, self._leads(event.parent))

    def _leads(self, parent: str) -> Callable[[EntityId], bool]:
        return lambda one: one.node is not None and self.charge.leads(parent, one.node)

    def parent_below(self, name: str) -> Peer | None:
        """What a parent below said last, and whether it is there; None: it never reported."""
        return None if self.down is None else self.down.below.get(name)

    def room_permits(self, now: int) -> tuple[Permit, ...] | None:
        """What the parent above says to asks for room; None where it is silent."""
        if self.down is not None:
            return self.down.above.permits(now)
        peer = self.parent
        fresh = peer is not None and peer.fresh(now, self._hello_ns)
        return peer.permits if peer is not None and fresh else None

    @property
    def charge(self) -> Charge:
        """Which nodes a parent keeps."""
        assert self.down is not None, "an agent has no charge but itself"
        return self.down.charge

    @property
    def reports(self) -> Reports | None:
        """What parents below tell."""
        return None if self.down is None else self.down.reports

    def probe(self, turn: Turn, node: str) -> None:
        """Ask for a hello at once."""
        self.links.probe(turn, node)

    def name_for(self, entity: EntityId) -> str | None:
        """The neighbour that has to do with an entity; None where none has."""
        return PARENT if self.down is None else entity.node

    def incarnation(self, entity: EntityId) -> int:
        """The boot of its node, as far as it is known here; 0 before the first."""
        name = self.name_for(entity)
        peer = None if name is None else self.peer(name)
        return 0 if peer is None else peer.incarnation

    def differs_over(self, entity: EntityId, ours: OwnSchema) -> str | None:
        """In what the neighbour plans such an entity otherwise than we do."""
        name = self.name_for(entity)
        return None if name is None else self.links.differs_over(name, entity.kind, ours)

    def part(self, node: str) -> None:
        """The node is another parent's: tell it nothing, and do not listen for it."""
        self.links.part(node)

    def stored(self, entity: EntityId, revision: int) -> None:
        """This is desired durably by now."""
        if self.down is not None:
            self.down.desired.changed(entity, revision)

    def forget(self, entity: EntityId) -> None:
        """An entity that was leaving has left."""
        if self.up is not None:
            self.up.desired.forget(entity)

    def forgive_pause(self, now: int) -> None:
        """Where this process was stopped or starved, nobody else was silent for so long."""
        due = self._timers.next()
        if due is not None and now - due > LAG_MAX_NS:
            self.links.forgive(now - due)

    def tell(self, turn: Turn, asked: Iterable[str], *, said: bool) -> None:
        """Send changes to the neighbours at once; an agent keeps what it receives.

        `asked` are the nodes with other demands than before; `said` that we say
        something else to what we are asked.
        """
        if self.up is not None:
            if self.up.desired.unsaved:
                turn.effects.append(self.up.desired.save())
            rows = [row for one in sorted(turn.changed, key=str) if (row := self._table.get(one))]
            self.up.tell(turn, rows, said=said)
        if self.down is not None:
            self.down.tell(turn, asked)
