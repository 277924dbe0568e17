"""Freezes: which one holds an entity, and until when; one that is over holds nothing."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from haptera.core.desired.proposals import Proposals
from haptera.core.state.limits import BACKOFF_NS, S
from haptera.core.state.row import EntityState
from haptera.core.state.rules import Rules, selector_of
from haptera.core.state.selecting import Declared, attributes_of
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.kinds.rules import freeze
from haptera.model.changes import Undeclare
from haptera.model.entity import EntityId
from haptera.model.walltime import WALL_S_MAX
from haptera.selectors.selector import Selector


@dataclass(frozen=True, slots=True)
class Hold:
    """A freeze that holds what it is `of`: whose it is, until when, and why.

    An agent does not learn whose it is; its parent is asked for that.
    """

    of: Selector
    owner: str
    until_s: int | None
    reason: str | None

    @property
    def text(self) -> str:
        """The same in words."""
        return freeze.words(self.owner, self.until_s, self.reason)


class Freezes:
    """The freezes of a cluster, which both sides obey; a parent also has them forgotten in time.

    Before a side knows what the wall clock shows, none of them ends.
    """

    def __init__(
        self, side: Side, table: EntityTable, timers: Timers, proposals: Proposals
    ) -> None:
        self._side = side
        self._table = table
        self._attributes = attributes_of(table)
        self._timers = timers
        self._proposals = proposals
        self._rules = Rules(table, freeze.kind.name)
        self._wall_offset_ns: int | None = None

    def why(self, entity: EntityId, now: int) -> str | None:
        """What holds this entity, in words: the freeze that lasts longest; None where none does."""
        hold = held(self.holds(now), Declared(entity, self._attributes))
        return None if hold is None else hold.text

    def holds(self, now: int) -> list[Hold]:
        """All that hold anything now, the one that lasts longest first."""
        lasting = [row for row in self._rules.all() if not self._over(row, now)]
        return [_hold(row) for row in sorted(lasting, key=_ends_s, reverse=True)]

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
        self._decide_again(turn, [selector_of(row.desired.values)])
        if self._side.node is None:
            self._proposals.change(turn, Undeclare(entity))
            self._timers.set(("freeze", entity), turn.now + BACKOFF_NS)

    def _over(self, row: EntityState, now: int) -> bool:
        offset_ns = self._wall_offset_ns
        return offset_ns is not None and now + offset_ns >= _ends_s(row) * S

    def _set_timers(self) -> None:
        if self._wall_offset_ns is not None:
            for row in self._rules.all():
                if freeze.until_s.name in row.desired.values:
                    ends_at = _ends_s(row) * S - self._wall_offset_ns
                    self._timers.set(("freeze", row.id), ends_at)

    def _decide_again(self, turn: Turn, selectors: Collection[Selector]) -> None:
        """On what these select, or on all, at leisure: none begins a step before that."""
        if (rows := self._rules.few(selectors)) is None:
            turn.all_due = True
        else:
            turn.dirty.update(row.id for row in rows)


def held(holds: Iterable[Hold], entity: Declared) -> Hold | None:
    """The first of these that holds an entity, be it there or only considered."""
    if entity.id.kind in freeze.EXEMPT:
        return None
    return next((hold for hold in holds if hold.of.means(entity)), None)


def _hold(row: EntityState) -> Hold:
    reason = row.desired.values.get(freeze.reason.name)
    of = selector_of(row.desired.values)
    return Hold(of, row.desired.owner, _until_s(row), None if reason is None else str(reason.value))


def _until_s(row: EntityState) -> int | None:
    until_s = row.desired.values.get(freeze.until_s.name)
    return None if until_s is None else int(until_s.value)


def _ends_s(row: EntityState) -> int:
    """Later than any time, where a freeze has no end."""
    until_s = _until_s(row)
    return WALL_S_MAX + 1 if until_s is None else until_s
