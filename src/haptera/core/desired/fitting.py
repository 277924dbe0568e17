"""The check that an entity's desired state fits one datagram after a write."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from haptera.core.state.table import EntityTable
from haptera.model.changes import Change, Declare, SetDesired, Undeclare, UnsetDesired
from haptera.model.declared.told_bytes import check_size
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.planner.domain.pieces import Pieces, slices

# Work, in moves that a search could try: going through a change, and counting an entity.
GATHERING_EACH: Final = 10
COUNTING_EACH: Final = 20
AT_ONCE: Final = 50


class Drafted(NamedTuple):
    """The desired state of an entity once the write holds."""

    values: dict[str, str | int]
    attributes: dict[str, str]


def checking_fit(table: EntityTable, changes: Sequence[Change]) -> Pieces[str | None]:
    """The first entity that would be too large, with the bytes of each part."""
    drafts: dict[EntityId, Drafted] = {}
    for some in slices(changes, AT_ONCE):
        for change in some:
            _take(table, change, drafts)
        yield GATHERING_EACH * len(some)
    for some_drafts in slices(list(drafts.items()), AT_ONCE):
        for entity, draft in some_drafts:
            try:
                check_size(table.kinds[entity.kind], entity, draft.values, draft.attributes)
            except HapteraError as error:
                return str(error)
        yield COUNTING_EACH * len(some_drafts)
    return None


def _take(table: EntityTable, change: Change, drafts: dict[EntityId, Drafted]) -> None:
    """Follow one change; the values of variables take the same room whichever are desired."""
    match change:
        case Declare(entity, attributes):
            drafts[entity] = Drafted(_draft(table, entity, drafts).values, attributes)
        case SetDesired(entity, name, value) if table.kinds[entity.kind].plain_named(name):
            _draft(table, entity, drafts).values[name] = value
        case UnsetDesired(entity, name) if table.kinds[entity.kind].plain_named(name):
            _draft(table, entity, drafts).values.pop(name, None)
        case Undeclare(entity):
            drafts[entity] = Drafted({}, {})
        case _:
            pass


def _draft(table: EntityTable, entity: EntityId, drafts: dict[EntityId, Drafted]) -> Drafted:
    """The draft of an entity so far: to begin with, all that is desired of it now."""
    if entity not in drafts:
        row = table.get(entity)
        held = {} if row is None else {name: one.value for name, one in row.desired.values.items()}
        drafts[entity] = Drafted(held, {} if row is None else row.desired.attributes)
    return drafts[entity]
