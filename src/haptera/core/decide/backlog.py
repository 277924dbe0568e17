"""Entities that a turn had no time for, in the order in which later turns see to them."""

from collections import OrderedDict, deque
from collections.abc import Iterable
from itertools import islice
from typing import Final

from haptera.core.state.entity.verdict import Verdict
from haptera.core.state.row import EntityState
from haptera.core.state.turn import Turn
from haptera.kinds import node
from haptera.model.answers.views import SETTLED, Condition
from haptera.model.entity import EntityId

# What is done about an entity meanwhile.
PLANNED: Final = "is being planned"
NODE: Final = node.kind.name
# So many that were put off are decided on before those that something has just happened to: else
# they would wait for as long as something happens to many in each turn.
FIRST: Final = 8


class Backlog:
    """First those that something happened to, then all whose module changed, then what to plan.

    What happened to an entity is announced once it was decided on.
    """

    def __init__(self) -> None:
        # Whether they are to be announced. (Of a plain dict the first is found slowly.)
        self._overdue: OrderedDict[EntityId, bool] = OrderedDict()
        # Those that were decided on since they were swept are left out when their turn comes.
        self._swept: deque[EntityId] = deque()
        self._decided: set[EntityId] = set()
        self._unplanned: OrderedDict[EntityId, None] = OrderedDict()

    @property
    def waits(self) -> bool:
        return bool(self._overdue or self._swept or self._unplanned)

    def is_overdue(self, entity: EntityId) -> bool:
        """Whether something happened to it since it was decided on."""
        return entity in self._overdue

    def put_off(self, turn: Turn, row: EntityState) -> None:
        """It is not decided on in this turn, though something happened to it.

        What something else is desired of is no longer said to be as it should be.
        """
        self._overdue[row.id] = row.id in turn.changed or self._overdue.get(row.id, False)
        turn.changed.discard(row.id)
        if row.id in turn.wanted and row.stance.condition in SETTLED:
            row.stance.arrive(Verdict(Condition.ACTING, PLANNED), turn.now)

    def remove(self, turn: Turn, entity: EntityId) -> None:
        """It is decided on now: it waits no more."""
        if self._swept:
            self._decided.add(entity)
        if self._overdue.pop(entity, False):
            turn.changed.add(entity)

    def drop(self, turn: Turn, entity: EntityId) -> None:
        """It is gone, or never waits."""
        self.remove(turn, entity)
        self.planned(entity)

    def sweep(self, rows: Iterable[EntityState]) -> None:
        """All of these are to be decided on again, nodes before what is on them."""
        ids = [row.id for row in rows]
        self._swept = deque(one for one in ids if one.kind == NODE)
        self._swept.extend(one for one in ids if one.kind != NODE)
        self._decided.clear()

    def plan(self, entity: EntityId) -> None:
        """It was decided on, but there was no time to plan for it; it keeps its place."""
        self._unplanned.setdefault(entity)

    def planned(self, entity: EntityId) -> None:
        self._unplanned.pop(entity, None)

    def oldest(self) -> Iterable[EntityId]:
        """Those that wait for the longest since something happened to them."""
        return islice(self._overdue, FIRST)

    def next(self) -> EntityId | None:
        """The next entity to decide on."""
        while self._swept and self._swept[0] in self._decided:
            self._swept.popleft()
        if not self._swept:
            self._decided.clear()
        for waiting in (self._overdue, self._swept, self._unplanned):
            if waiting:
                return next(iter(waiting))
        return None
