"""What would come of changes: the chains that they would start, before anything is written."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from haptera.core.catalog import Catalog
from haptera.core.diff import goal as goal_of
from haptera.core.knowledge import Domain
from haptera.core.query import view
from haptera.core.rows.row import Row
from haptera.core.rows.states import States
from haptera.core.rows.table import Table
from haptera.core.stages import End
from haptera.core.state import start
from haptera.model.chain import Chain, ReasonKind
from haptera.model.changes import Change
from haptera.model.views import Condition, EntityView

if TYPE_CHECKING:
    from haptera.core.fleet.columns import Columns

# Entities of a class and goal from which on columns are worth making.
COLUMNS_MIN: Final = 64


@dataclass(frozen=True, slots=True)
class Alike:
    """The entities of one class that have the same goal, and their states."""

    domain: Domain
    goal: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    words: list[int] = field(default_factory=list)

    def open(self) -> Iterator[tuple[Row, int]]:
        """Those that are not as desired, for whom a part or a reason comes next."""
        # What takes a search is searched for once, with its chain.
        numbers = self._states().next_parts(self.goal, budget=0)
        for row, word, number in zip(self.rows, self.words, numbers, strict=True):
            if number != End.MET:
                yield row, word

    def _states(self) -> "States | Columns":
        if len(self.words) < COLUMNS_MIN:
            return States(self.domain, self.words)
        # Not before it is needed: numpy starts threads, and a process that forks may have none.
        from haptera.core.fleet.columns import Columns

        return Columns(self.domain, self.words)


def preview(
    table: Table, catalog: Catalog, changes: Iterable[Change], now: int
) -> list[EntityView]:
    """The entities that would not be as desired, as they would stand."""
    draft = table.copy()
    for change in changes:
        draft.apply(change, 0)
    for alike in _alike(draft, catalog):
        for row, word in alike.open():
            _stand(row, draft.node_of(row), word, alike.goal, catalog)
    rows = (row for row in draft if row.condition is not Condition.IDLE)
    return [view(row, now) for row in sorted(rows, key=lambda row: str(row.id))]


def _alike(draft: Table, catalog: Catalog) -> Iterable[Alike]:
    found: dict[tuple[Domain, frozenset[tuple[str, str]]], Alike] = {}
    for row in draft:
        node = draft.node_of(row)
        domain = catalog.domain(row, node)
        goal = goal_of(row, domain)
        if goal and not (row.resident and row.id.node is None):
            alike = found.setdefault((domain, frozenset(goal.items())), Alike(domain, goal))
            alike.rows.append(row)
            alike.words.append(start(row, node, domain, goal))
    return found.values()


def _stand(row: Row, node: Row | None, word: int, goal: dict[str, str], catalog: Catalog) -> None:
    row.plan = catalog.plan(row, node, word, goal, frozenset())
    if isinstance(row.plan, Chain):
        row.condition = Condition.ACTING
    else:
        waits = row.plan.reason.kind is ReasonKind.WAITS
        row.condition = Condition.WAITING if waits else Condition.STUCK
        row.why = row.plan.reason.text
