"""What begins with a neighbour below: a session when it enrols, a link when it speaks."""

from collections.abc import Callable, Mapping

from haptera.core.state.side import parent_below
from haptera.core.state.table import EntityTable
from haptera.core.state.turn import Turn
from haptera.core.sync.downlink import SyncDownlink
from haptera.model.entity import node_id
from haptera.model.events import Heard


class Arrivals:
    """Takes in who enrols here, or has moved here; `here` is what this side looks at itself.

    Nobody below is spoken with before this side `may_speak`: a parent below that does not hold all
    that is desired yet would have its agents end what it does not name.
    """

    def __init__(
        self,
        table: EntityTable,
        down: SyncDownlink,
        here: set[tuple[str, str]],
        may_speak: Callable[[], bool],
    ) -> None:
        self._table = table
        self._down = down
        self._here = here
        self._may_speak = may_speak
        # Sessions of those who are not spoken with.
        self._waiting: dict[str, int] = {}

    def load(self, incarnations: Mapping[str, int], now: int) -> None:
        """Those with sessions: who is kept here is spoken with."""
        self._waiting.update(incarnations)
        self.begin(now)

    def begin(self, now: int) -> None:
        """Speak with those who wait for it, as far as they are kept here by now."""
        for name, incarnation in [*self._waiting.items()]:
            if self._is_due(name):
                self._join(now, name, incarnation)

    def meet(self, turn: Turn, event: Heard) -> None:
        """A node that another parent kept speaks with this one: it is kept here from now on."""
        name = event.peer
        if self._down.links(name).get(name) is not None or not self._may_speak():
            return
        if parent_below(name) is None and self._down.charge.may_keep(name):
            self._join(turn.now, name, event.message.incarnation)
            self._down.reports.resume(turn, name)

    def enrolled(self, turn: Turn, name: str, incarnation: int) -> None:
        """A node that enrols has booted: what was known of what ran on it is remembered."""
        if not self._is_due(name):
            self._waiting[name] = incarnation
            return
        self._join(turn.now, name, incarnation)
        if (node := self._table.get(node_id(name))) is not None:
            node.work.enrolled()
        for row in self._table.on(name):
            row.report.clear()
            for what in [one for one in row.belief.known if (row.id.kind, one) not in self._here]:
                row.belief.forget(what, turn.now)
            turn.touch(row.id)

    def _is_due(self, name: str) -> bool:
        kept = parent_below(name) is not None or self._down.charge.keeps(name)
        return kept and self._may_speak()

    def _join(self, now: int, name: str, incarnation: int) -> None:
        self._waiting.pop(name, None)
        self._down.links(name).join(now, name, incarnation)
