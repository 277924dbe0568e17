"""The links to all below: what is desired goes down by them, what is seen comes up."""

from collections.abc import Callable, Iterable

from haptera.core.state.side import Side, parent_below
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.charge import Charge, Reports
from haptera.core.sync.delta import DesiredOut
from haptera.core.sync.links import Direction, Layers, Links, Spoken
from haptera.core.sync.merge import ObservedIn
from haptera.core.sync.subtree import PictureIn, SubtreeOut
from haptera.model.entity import EntityId


class SyncDownlink:
    """A parent's links to the agents of its nodes, and to parents below.

    `here` is what this side looks at itself, `spoken` what it asks of agents.
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
        self.desired = DesiredOut(table, epoch)
        agents = Layers(Direction.DOWN, self.desired, ObservedIn(table, here))
        self.agents = Links(side, timers, agents, schema, spoken)
        self.charge = Charge(side, table, self.agents.get)
        self.reports = Reports(table, self.charge)
        self._subtrees = SubtreeOut(table, self.desired)
        picture = PictureIn(table, self.charge, self.reports)
        parents = Layers(Direction.DOWN, self._subtrees, picture)
        self.parents = Links(side, timers, parents, schema)

    def links(self, peer: str) -> Links:
        """Those that a neighbour below is among."""
        return self.agents if parent_below(peer) is None else self.parents

    def changed(self, entity: EntityId, revision: int) -> None:
        """Something else is desired of it by now."""
        self.desired.changed(entity, revision)
        self._subtrees.changed(entity)

    def tell(self, turn: Turn, asked: Iterable[str]) -> None:
        """What changed goes down at once; also to the nodes that are `asked` something else."""
        self.agents.tell_changes(turn, {*asked, *self.desired.take_changed()})
        self.parents.tell_changes(turn, self._subtrees.take_changed())
