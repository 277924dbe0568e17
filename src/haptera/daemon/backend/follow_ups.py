"""What the controller of groups would write once changes are written: a part of their plan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, assert_never

import msgspec

from haptera.controllers.groups import KINDS as READ
from haptera.controllers.groups import controller, decide
from haptera.core.desired.ownership import declare, desire
from haptera.kinds import KINDS, replica
from haptera.kinds.group import REPLICAS_MAX
from haptera.kinds.service import Run
from haptera.model.answers.views import Condition, DesiredView, EntityView, ObservedView
from haptera.model.changes import (
    Change,
    CloseIntent,
    Declare,
    OpenIntent,
    SetDesired,
    Undeclare,
    UnsetDesired,
)
from haptera.model.declared.schema import Applied
from haptera.model.entity import EntityId, parse_entity
from haptera.model.facts import Method

OWNER = f"controller:{controller.name}"
# More than a group has replicas: with each round of a roll one is changed, and with the last none.
ROUNDS_MAX: Final = 2 * REPLICAS_MAX
_RUNS: Final = {
    name: ObservedView(value, known=True, method=Method.INFERRED, by="plan", age_ms=0)
    for name, value in ((replica.run.name, Run.RUNNING), (replica.applied.name, Applied.CURRENT))
}
Views = Mapping[str, EntityView]


def follow_ups(views: Views, changes: Sequence[Change], wall_s: float) -> tuple[Change, ...]:
    """The replicas that would come, change and go; `views` are of all that the controller reads.

    Each round is shown as if what the one before had started ran by then. Leaders are left out:
    that follows from what replicas then do.
    """
    after = _after(views, changes)
    found: list[Change] = []
    for _ in range(ROUNDS_MAX):
        written = _written(after, wall_s)
        if not written:
            break
        found += written
        begun = {one.entity for one in written if isinstance(one, SetDesired)}
        after = _run(_after(after, written), begun)
    return tuple(found)


def _written(after: Views, wall_s: float) -> list[Change]:
    """What the controller would write of replicas now."""
    writes = decide(after, OWNER, wall_s)
    found: list[Change] = []
    for name in sorted(writes.declare):
        entity = parse_entity(name)
        if entity.kind == replica.kind.name:
            found += declare(KINDS, entity, None, writes.declare[name], (None, OWNER))
    for name, patch in sorted(writes.desired.items()):
        entity = parse_entity(name)
        if entity.kind == replica.kind.name:
            held = after[name].desired if name in after else {}
            found += desire(KINDS[entity.kind], entity, held, patch, OWNER)
    going = map(parse_entity, sorted(writes.undeclare))
    return [*found, *(Undeclare(one) for one in going if one.kind == replica.kind.name)]


def _run(views: Views, some: Iterable[EntityId]) -> dict[str, EntityView]:
    """The views as if these ran, as they are desired."""
    after = dict(views)
    for name in map(str, some):
        if name in after:
            observed = {**after[name].observed, **_RUNS}
            after[name] = msgspec.structs.replace(after[name], observed=observed)
    return after


def _after(views: Views, changes: Iterable[Change]) -> dict[str, EntityView]:
    """The views as they would be, of what is desired."""
    after = dict(views)
    for change in changes:
        match change:
            case Declare(entity, attributes):
                view = after.get(str(entity), _nothing(entity))
                after[str(entity)] = msgspec.structs.replace(view, attributes=attributes)
            case Undeclare(entity):
                after.pop(str(entity), None)
            case SetDesired(entity, name, value, owner):
                view = after.get(str(entity), _nothing(entity))
                wanted = {**view.desired, name: DesiredView(value, owner)}
                after[str(entity)] = msgspec.structs.replace(view, desired=wanted)
            case UnsetDesired(entity, name):
                view = after.get(str(entity), _nothing(entity))
                left = {one: held for one, held in view.desired.items() if one != name}
                after[str(entity)] = msgspec.structs.replace(view, desired=left)
            case OpenIntent() | CloseIntent():
                pass
            case _:
                assert_never(change)
    return dict(_read(after))


def _read(views: Views) -> Iterator[tuple[str, EntityView]]:
    """Those that the controller reads."""
    return ((name, view) for name, view in views.items() if view.kind in READ)


def _nothing(entity: EntityId) -> EntityView:
    """Of what is not there yet."""
    return EntityView(
        entity=str(entity),
        kind=entity.kind,
        name=entity.name,
        node=entity.node,
        revision=0,
        attributes={},
        desired={},
        observed={},
        condition=Condition.IDLE,
        chain=[],
        since_ms=0,
    )
