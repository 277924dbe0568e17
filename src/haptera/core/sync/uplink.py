"""The link to the parent: what is desired comes down by it, what is seen goes up."""

from collections.abc import Callable, Iterable

from haptera.core.state.row import EntityState
from haptera.core.state.side import PARENT, Side
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.delta import ObservedOut
from haptera.core.sync.links import Direction, Layers, Links, Spoken
from haptera.core.sync.merge import DesiredIn


class SyncUplink:
    """An agent's link to its parent."""

    def __init__(
        self,
        side: Side,
        timers: Timers,
        desired: DesiredIn,
        observed: ObservedOut,
        schema: int,
        spoken: Callable[[str], Spoken],
    ) -> None:
        self.desired = desired
        self._observed = observed
        layers = Layers(Direction.UP, observed, desired)
        self.links = Links(side, timers, layers, schema, spoken)

    def tell(self, turn: Turn, changed: Iterable[EntityState], *, said: bool) -> None:
        """What changed goes up at once; also where something else is `said` of permits."""
        told = [self._observed.changed(row) for row in changed]
        if any(told) or said:
            self.links.tell_changes(turn, (PARENT,))
