"""The number of entities of one kind that a cluster may have, as their kind declares it."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from haptera.core.state.table import EntityTable
from haptera.model.changes import Change, Declare, Undeclare
from haptera.model.entity import EntityId
from haptera.planner.domain.pieces import Pieces, slices

# Work, in moves that a search could try.
COUNTING_EACH: Final = 1
COUNTED_AT_ONCE: Final = 1_000


def checking_count(table: EntityTable, changes: Sequence[Change]) -> Pieces[str | None]:
    """The first kind of which a write would make more than there may be, and how many.

    A cluster that has too many already may become less crowded, step by step.
    """
    after = dict[EntityId, bool]()
    for changed in slices(changes, COUNTED_AT_ONCE):
        after |= {
            one.entity: isinstance(one, Declare)
            for one in changed
            if isinstance(one, Declare | Undeclare) and one.entity.node is None
        }
        yield COUNTING_EACH * len(changed)
    more = Counter[str]()
    for entity, is_there in after.items():
        more[entity.kind] += is_there - _counts(table, entity)
    limits = {
        kind.name: kind.count_max
        for kind in table.kinds.values()
        if more[kind.name] > 0 and kind.count_max is not None
    }
    if not limits:
        return None
    for some in slices([*table], COUNTED_AT_ONCE):
        more.update(row.kind.name for row in some if _counts(table, row.id))
        yield COUNTING_EACH * len(some)
    for name, limit in limits.items():
        if more[name] > limit:
            return f"{name}: {more[name]} would be more than {limit}; declare fewer of them"
    return None


def _counts(table: EntityTable, entity: EntityId) -> bool:
    row = table.get(entity)
    return row is not None and row.desired.declared
