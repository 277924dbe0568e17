"""The desired state at an earlier time: the present one, less the changes since."""

from collections.abc import Iterable

import msgspec

from haptera.model.answers.past import Changed
from haptera.model.changes import Desired, StoredEntity
from haptera.model.entity import EntityId, parse_entity


def desired_before(
    now: Iterable[StoredEntity], changes: Iterable[Changed]
) -> dict[EntityId, StoredEntity]:
    """The desired layer before these changes, which are the last, latest first."""
    found = {one.entity: msgspec.structs.replace(one, desired=dict(one.desired)) for one in now}
    for change in changes:
        entity = parse_entity(change.entity)
        if change.name is None:
            _undo_declaration(found, entity, change)
        elif (held := found.get(entity)) is None:
            continue
        elif change.before is None:
            held.desired.pop(change.name, None)
        else:
            held.desired[change.name] = Desired(change.before, change.owner_before or change.owner)
    return found


def _undo_declaration(
    found: dict[EntityId, StoredEntity], entity: EntityId, change: Changed
) -> None:
    if change.before is None:
        found.pop(entity, None)
        return
    attributes = msgspec.json.decode(str(change.before), type=dict[str, str])
    held = found.get(entity)
    if held is None:
        owner = change.owner_before or change.owner
        found[entity] = StoredEntity(entity, attributes, owner, {}, 0)
    else:
        held.attributes = attributes
