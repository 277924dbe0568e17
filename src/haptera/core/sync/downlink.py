"""The links to the agents of nodes: what is desired goes down by them, what is seen comes up."""

from collections.abc import Callable, Iterable

from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.charge import Charge
from haptera.core.sync.delta import DesiredOut
from haptera.core.sync.links import Direction, Layers, Links, Spoken
from haptera.core.sync.merge import ObservedIn
from haptera.core.sync.parents import ParentAbove, ParentsBelow
from haptera.core.sync.reports import Reports


class SyncDownlink:
    """A parent's links to the agents of its nodes, and what parents below report of theirs.

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
        self.links = Links(side, timers, agents, schema, spoken)
        self.charge = Charge(side, table, self.links.get)
        self.reports = Reports(table, self.charge)
        self.below = ParentsBelow(side)
        self.above = ParentAbove(side)

    def tell(self, turn: Turn, asked: Iterable[str]) -> None:
        """What changed goes down at once; also to the nodes that are `asked` something else."""
        self.links.tell_changes(turn, {*asked, *self.desired.take_changed()})
