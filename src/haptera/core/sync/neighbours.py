"""An agent's parent, or a parent's children: what passes between them, and who is there."""

from collections.abc import Callable, Iterable, Mapping

from haptera.core.state.limits import LAG_MAX_NS
from haptera.core.state.side import PARENT, Side
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.state.typical_durations import Usual
from haptera.core.sync.arrivals import Arrivals
from haptera.core.sync.delta import DesiredOut, ObservedOut, Outgoing
from haptera.core.sync.links import Links, Spoken
from haptera.core.sync.merge import DesiredIn, Incoming, ObservedIn
from haptera.core.sync.peers import Peer
from haptera.model.effects import SaveDesired
from haptera.model.entity import EntityId
from haptera.model.remote_schema import ModuleSum


class Neighbours:
    """The two layers as this side sends the one and takes the other, and the links they go by.

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
        self._side = side
        self._table = table
        self._timers = timers
        self.usual = Usual()
        self._desired_out = DesiredOut(table, epoch)
        self._observed_out = ObservedOut(table, side, here, self.usual)
        self._desired_in = DesiredIn(table, epoch)
        self._observed_in = ObservedIn(table, here)
        down = side.node is None
        out: Outgoing = self._desired_out if down else self._observed_out
        coming: Incoming = self._observed_in if down else self._desired_in
        self.links = Links(side, timers, out, coming, schema, spoken)
        self.arrivals = Arrivals(side, table, self.links, here)

    def peer(self, name: str) -> Peer | None:
        return self.links.get(name)

    def probe(self, turn: Turn, node: str) -> None:
        """Ask for a hello at once."""
        self.links.probe(turn, node)

    def name_for(self, entity: EntityId) -> str | None:
        """The neighbour that has to do with an entity; None where none has."""
        return PARENT if self._side.node is not None else entity.node

    def incarnation(self, entity: EntityId) -> int:
        """The boot of its node, as far as it is known here; 0 before the first."""
        name = self.name_for(entity)
        peer = None if name is None else self.links.get(name)
        return 0 if peer is None else peer.incarnation

    def differs_over(self, entity: EntityId, sums: Mapping[str, ModuleSum]) -> str | None:
        """In what the neighbour plans otherwise than we do; `sums` are of our modules' parts."""
        name = self.name_for(entity)
        if name is None or self.links.agrees(name):
            return None
        return self.links.differs_in(name, sums)

    def part(self, node: str) -> None:
        """The node is another parent's: tell it nothing, and do not listen for it."""
        self.links.part(node)

    def stored(self, entity: EntityId, revision: int) -> None:
        """This is desired durably by now."""
        self._desired_out.changed(entity, revision)

    def forget(self, entity: EntityId) -> None:
        """An entity that was leaving has left."""
        self._desired_in.forget(entity)

    def forgive_pause(self, now: int) -> None:
        """Where this process was stopped or starved, nobody else was silent for so long."""
        due = self._timers.next()
        if due is not None and now - due > LAG_MAX_NS:
            self.links.forgive(now - due)

    def tell(self, turn: Turn, asked: Iterable[str], *, said: bool) -> None:
        """What changed goes to the neighbours at once, and an agent keeps what it is told.

        `asked` are the nodes of which something else is asked than before; `said` that we say
        something else to what we are asked.
        """
        if self._side.node is None:
            self.links.tell_changes(turn, {*asked, *self._desired_out.take_changed()})
            return
        if self._desired_in.take_changed():
            kept = SaveDesired(self._desired_in.epoch, self._table.revision, self._table.stored())
            turn.effects.append(kept)
        rows = [row for one in sorted(turn.changed, key=str) if (row := self._table.get(one))]
        told = [self._observed_out.changed(row) for row in rows]
        if any(told) or said:
            self.links.tell_changes(turn, (self._side.node,))
