"""What would come of changes: the chains that they would start, before anything is written."""

from collections.abc import Iterable

from haptera.core.catalog import Catalog
from haptera.core.diff import goal as goal_of
from haptera.core.query import view
from haptera.core.rows.row import Row
from haptera.core.rows.table import Table
from haptera.core.state import start
from haptera.model.chain import Chain, ReasonKind
from haptera.model.changes import Change
from haptera.model.views import Condition, EntityView


def preview(
    table: Table, catalog: Catalog, changes: Iterable[Change], now: int
) -> list[EntityView]:
    """All entities as they would stand."""
    draft = table.copy()
    for change in changes:
        draft.apply(change, 0)
    return [_stand(row, draft, catalog, now) for row in sorted(draft, key=lambda row: str(row.id))]


def _stand(row: Row, draft: Table, catalog: Catalog, now: int) -> EntityView:
    node = draft.node_of(row)
    domain = catalog.domain(row, node)
    goal = goal_of(row, domain)
    row.since, row.error = now, None
    row.condition, row.why = Condition.IDLE, None
    if goal and not (row.resident and row.id.node is None):
        row.plan = catalog.plan(row, node, start(row, node, domain, goal), goal, frozenset())
        if isinstance(row.plan, Chain):
            row.condition = Condition.ACTING if row.plan.links else Condition.CONVERGED
        else:
            waits = row.plan.reason.kind is ReasonKind.WAITS
            row.condition = Condition.WAITING if waits else Condition.STUCK
            row.why = row.plan.reason.text
    return view(row, now)
