"""What begins with a neighbour: a session when it enrols, a link when it speaks."""

from collections.abc import Mapping

from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.core.sync.charge import Charge, Reports
from haptera.core.sync.links import Links
from haptera.model.entity import node_id
from haptera.model.events import Heard


class Arrivals:
    """Takes in who enrols here, or has moved here; `here` is what this side looks at itself."""

    def __init__(
        self,
        side: Side,
        table: EntityTable,
        links: Links,
        here: set[tuple[str, str]],
    ) -> None:
        self._side = side
        self._table = table
        self._links = links
        self.charge = Charge(side, table, links.get)
        self.reports = Reports(table, self.charge)
        self._here = here

    def load(self, incarnations: Mapping[str, int], now: int) -> None:
        """Those with sessions: who is kept here is spoken with."""
        for name, incarnation in incarnations.items():
            if self._side.node is not None or self.charge.keeps(name):
                self._links.join(now, name, incarnation)

    def meet(self, turn: Turn, event: Heard) -> None:
        """A node that another parent kept speaks with this one: it is kept here from now on."""
        if self._side.node is not None or self._links.get(event.peer) is not None:
            return
        if self.charge.may_keep(event.peer):
            self._links.join(turn.now, event.peer, event.message.incarnation)
            self.reports.resume(turn, event.peer)

    def enrolled(self, turn: Turn, peer: str, incarnation: int) -> None:
        """A node that enrols has booted: what was known of what ran on it is remembered."""
        if self._side.node is not None:
            self._links.join(turn.now, peer, incarnation)
            return
        if not self.charge.keeps(peer):
            return
        self._links.join(turn.now, peer, incarnation)
        if (node := self._table.get(node_id(peer))) is not None:
            node.booted_at = None
            if node.stepping is not None:
                node.stepping.enrolled = True
        for row in self._table.on(peer):
            row.reported.clear()
            row.stands = None
            for name in [one for one in row.known if (row.id.kind, one) not in self._here]:
                row.forget(name, turn.now)
            turn.touch(row.id)
