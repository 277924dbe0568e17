"""Values that mean nothing together, as their kind declares."""

from collections.abc import Mapping, Sequence
from typing import Final

from haptera.core.desired.contradictions import SITE
from haptera.core.state.table import EntityTable
from haptera.model.changes import Change, Declare, SetDesired, Undeclare, UnsetDesired
from haptera.model.declared.desired_check import did_you_mean
from haptera.model.declared.schema import Kind
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.planner.domain.pieces import Pieces, slices
from haptera.selectors.names import nearest_name

# Work, in moves that a search could try: going through a change, and asking a kind.
GATHERING_EACH: Final = 5
ASKING: Final = 50
GATHERED_AT_ONCE: Final = 50

Draft = dict[str, str | int]


def checking_whole(table: EntityTable, changes: Sequence[Change]) -> Pieces[str | None]:
    """The first entity that a write would give desired values that contradict each other, and why.

    What meant as little before is not the write's doing. What a site file says is checked where it
    is read: it says what should be, whatever people try meanwhile.
    """
    drafts: dict[EntityId, Draft] = {}
    for some in slices(changes, GATHERED_AT_ONCE):
        for change in some:
            _take(table, change, drafts)
        yield GATHERING_EACH * len(some)
    for entity, draft in drafts.items():
        yield ASKING
        before = _values(table, entity)
        problem = _problem(table.kinds[entity.kind], draft)
        if problem is not None and str(problem) != str(_problem(table.kinds[entity.kind], before)):
            return _told(table, entity, problem, is_new=not before)
    return None


def _take(table: EntityTable, change: Change, drafts: dict[EntityId, Draft]) -> None:
    """Follow one change to an entity whose kind has something to say."""
    match change:
        case Declare(entity) | Undeclare(entity) if table.kinds[entity.kind].whole:
            drafts[entity] = {} if isinstance(change, Undeclare) else _values(table, entity)
        case SetDesired(entity, name, value, owner) if table.kinds[entity.kind].whole:
            if owner != SITE:
                drafts.setdefault(entity, _values(table, entity))
            if entity in drafts:
                drafts[entity][name] = value
        case UnsetDesired(entity, name) if table.kinds[entity.kind].whole:
            drafts.setdefault(entity, _values(table, entity)).pop(name, None)
        case _:
            pass


def _values(table: EntityTable, entity: EntityId) -> Draft:
    row = table.get(entity)
    return {} if row is None else {name: one.value for name, one in row.desired.values.items()}


def _problem(kind: Kind, values: Mapping[str, str | int]) -> HapteraError | None:
    """Why these values mean nothing together; of what nothing is desired, nothing is wrong."""
    if kind.whole is None or not values:
        return None
    try:
        kind.whole(values)
    except HapteraError as error:
        return error
    return None


def _told(table: EntityTable, entity: EntityId, problem: HapteraError, *, is_new: bool) -> str:
    """With the entity that was meant, perhaps, where there was none of this name."""
    others = [row.id.name for row in table.of_cluster(entity.kind)] if is_new else []
    near = nearest_name(entity.name, others)
    guess = did_you_mean(None if near is None else f"{entity.kind}:{near}").rstrip()
    do = "; ".join(filter(None, [problem.do, guess]))
    return f"{entity}: {HapteraError(problem.what, do=do)}"
