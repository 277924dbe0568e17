"""Which freeze holds an entity, and until when; one whose time has come holds nothing."""

from collections.abc import Collection

from haptera.core.limits import BACKOFF_NS, S
from haptera.core.proposals import Proposals
from haptera.core.rows.row import Row
from haptera.core.rows.table import Table
from haptera.core.rules import Rules, selector_of
from haptera.core.side import Side
from haptera.core.timers import Timers
from haptera.core.turn import Turn
from haptera.kinds import freeze
from haptera.model.changes import Undeclare
from haptera.model.entity import EntityId
from haptera.model.selector import Selector
from haptera.model.walltime import WALL_S_MAX, utc_text


class Freezes:
    """The freezes of a cluster, which both sides obey; a parent also has them forgotten in time.

    Before a side was told what the wall clock shows, none of them ends.
    """

    def __init__(self, side: Side, table: Table, timers: Timers, proposals: Proposals) -> None:
        self._side = side
        self._table = table
        self._timers = timers
        self._proposals = proposals
        self._rules = Rules(table, freeze.kind.name)
        self._wall_offset_ns: int | None = None

    def why(self, entity: EntityId, now: int) -> str | None:
        """What holds this entity, in words: the freeze that lasts longest; None where none does."""
        if entity.kind in freeze.EXEMPT:
            return None
        holding = [row for row in self._rules.of(entity) if not self._over(row, now)]
        return _words(max(holding, key=_until_s)) if holding else None

    def follow(self, turn: Turn) -> None:
        """Where freezes are new, other than before, or gone: decide again on what they are of."""
        if changed := self._rules.changed():
            self._decide_again(turn, changed)
            self._set_timers()

    def set_clock(self, wall_offset_ns: int) -> None:
        """The wall clock was read, or set: other freezes may be over, and all end by it."""
        self._wall_offset_ns = wall_offset_ns
        self._rules.forget()

    def end(self, turn: Turn, entity: EntityId) -> None:
        """The timer of this freeze went off; if its time has come, it is to be forgotten.

        Where it cannot be written now, or was prolonged meanwhile, it is seen to again.
        """
        row = self._table.get(entity)
        if row is None:
            return
        if not self._over(row, turn.now):
            self._set_timers()
            return
        self._decide_again(turn, [selector_of(row.desired)])
        if self._side.node is None:
            self._proposals.change(turn, Undeclare(entity))
            self._timers.set(("freeze", entity), turn.now + BACKOFF_NS)

    def _over(self, row: Row, now: int) -> bool:
        offset_ns = self._wall_offset_ns
        return offset_ns is not None and now + offset_ns >= _until_s(row) * S

    def _set_timers(self) -> None:
        if self._wall_offset_ns is not None:
            for row in self._rules.all():
                if freeze.until_s.name in row.desired:
                    ends_at = _until_s(row) * S - self._wall_offset_ns
                    self._timers.set(("freeze", row.id), ends_at)

    def _decide_again(self, turn: Turn, selectors: Collection[Selector]) -> None:
        turn.dirty.update(row.id for row in self._rules.selected(selectors))


def _until_s(row: Row) -> int:
    """Later than any time, where a freeze has no end."""
    until_s = row.desired.get(freeze.until_s.name)
    return WALL_S_MAX + 1 if until_s is None else int(until_s.value)


def _words(row: Row) -> str:
    """An agent is not told whose a freeze is; its parent is asked for that."""
    reason = row.desired.get(freeze.reason.name)
    owner = f" by {row.owner}" if row.owner else ""
    until = f" until {utc_text(_until_s(row))}" if freeze.until_s.name in row.desired else ""
    return f"frozen{owner}{until}" + ("" if reason is None else f": {reason.value}")
