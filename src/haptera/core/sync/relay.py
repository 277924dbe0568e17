"""The desired state that goes down to a parent below, and the changes made to it on the way."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from haptera.core.sync.charge import parents_of
from haptera.kinds import image, system
from haptera.kinds.node import kind as node
from haptera.model.changes import (
    Change,
    Declare,
    Desired,
    SetDesired,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.entity import EntityId


def nodes_of(entities: Iterable[StoredEntity], parent: str) -> frozenset[str]:
    """The nodes that this parent is above: those whose list has it, or another one below it."""
    lists = {
        one.entity.name: frozenset(parents_of(one.attributes))
        for one in entities
        if one.entity.kind == node.name
    }
    found: frozenset[str] = frozenset()
    while True:
        above = found | {parent}
        more = frozenset(name for name, listed in lists.items() if listed & above)
        if more == found:
            return found
        found = more


def relayed(entities: Iterable[StoredEntity], parent: str) -> dict[EntityId, StoredEntity]:
    """All that is on these nodes, the parents that they may have, and what is the cluster's.

    Images that no system there names are not to be there, unless one is named by its digest.
    """
    every = list(entities)
    nodes = nodes_of(every, parent)
    others = {
        name
        for one in every
        if one.entity.kind == node.name and one.entity.name in nodes
        for name in parents_of(one.attributes)
    }
    images = {
        str(one.desired[name].value)
        for one in every
        if one.entity.kind == system.kind.name and one.entity.node in nodes
        for name in (system.image.name, system.spare.name)
        if name in one.desired
    }
    by_digest = any(one.startswith(image.DIGEST) for one in images)
    return {
        one.entity: one if by_digest or _is_due(one.entity, images) else _absent(one)
        for one in every
        if one.entity.node is None
        or one.entity.node in nodes
        or (one.entity.kind == node.name and one.entity.name in others)
    }


def _is_due(entity: EntityId, images: Collection[str]) -> bool:
    return entity.kind != image.kind.name or entity.name in images


def _absent(one: StoredEntity) -> StoredEntity:
    desired = {image.state.name: Desired(image.State.ABSENT.value, one.owner)}
    return StoredEntity(one.entity, one.attributes, one.owner, desired, one.revision)


def changes(
    wanted: Mapping[EntityId, StoredEntity], held: Iterable[StoredEntity]
) -> tuple[Change, ...]:
    """What leads from the one to the other; each value stays its owner's. Nodes come first."""
    before = {one.entity: one for one in held}
    made = sorted(wanted.values(), key=lambda one: (one.entity.kind != node.name, one.entity))
    gone = sorted(before.keys() - wanted.keys(), key=lambda one: (one.kind == node.name, one))
    return (
        *(change for one in made for change in _made(one, before.get(one.entity))),
        *(Undeclare(one) for one in gone),
    )


def _made(wanted: StoredEntity, held: StoredEntity | None) -> Iterator[Change]:
    declared = (wanted.attributes, wanted.owner)
    if held is None or (held.attributes, held.owner) != declared:
        yield Declare(wanted.entity, dict(wanted.attributes), wanted.owner)
    before = {} if held is None else held.desired
    for name, one in wanted.desired.items():
        if before.get(name) != one:
            yield SetDesired(wanted.entity, name, one.value, one.owner)
    for name in before.keys() - wanted.desired.keys():
        yield UnsetDesired(wanted.entity, name)
