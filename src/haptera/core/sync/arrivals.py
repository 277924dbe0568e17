"""The arrival of a neighbour below: a session when it enrols, a link when it speaks."""

from collections.abc import Mapping

from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.core.sync.downlink import SyncDownlink
from haptera.core.sync.peers import phase_ns
from haptera.model.entity import node_id
from haptera.model.events import Heard


class Arrivals:
    """Takes in who enrols here, or has moved here; `here` is what this side looks at itself."""

    def __init__(
        self,
        side: Side,
        table: EntityTable,
        down: SyncDownlink,
        here: set[tuple[str, str]],
    ) -> None:
        self._side = side
        self._table = table
        self._down = down
        self._here = here

    def load(self, incarnations: Mapping[str, int], now: int) -> None:
        """Those with sessions: who is kept here is spoken with, as soon as all can be heard."""
        kept = {name: one for name, one in incarnations.items() if self._down.charge.keeps(name)}
        for name, incarnation in kept.items():
            self._down.links.join(now, name, incarnation)
        if self._side.greet_each_ns is not None:
            within_ns = min(self._side.hello_ns, len(kept) * self._side.greet_each_ns)
            for name in kept:
                self._down.links.greet(name, now + phase_ns(name, within_ns))

    def meet(self, turn: Turn, event: Heard) -> None:
        """A node that another parent kept speaks with this one: it is kept here from now on."""
        name = event.peer
        if self._down.links.get(name) is None and self._down.charge.may_keep(name):
            self._down.links.join(turn.now, name, event.message.incarnation)
            self._down.reports.resume(turn, name)

    def enrolled(self, turn: Turn, name: str, incarnation: int) -> None:
        """A node that enrols has booted: what was known of what ran on it is remembered."""
        if not self._down.charge.keeps(name):
            return
        self._down.links.join(turn.now, name, incarnation)
        if (node := self._table.get(node_id(name))) is not None:
            node.work.enrolled()
        for row in self._table.on(name):
            row.report.clear()
            for what in [one for one in row.belief.known if (row.id.kind, one) not in self._here]:
                row.belief.forget(what, turn.now)
            turn.touch(row.id)
