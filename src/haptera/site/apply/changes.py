"""From a site file to the changes of what is stored: what `site` owns is set and pruned."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from haptera.core.desired.ownership import Claim
from haptera.kinds import node
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
from haptera.model.errors import Code, ConflictError, InputError
from haptera.selectors.selector import fold_entities
from haptera.site.model.site import Site, SiteEntity

SITE_OWNER: Final = "site"
NODE: Final = node.kind.name
CONFLICTS_MAX: Final = 20


def changes(
    site: Site, current: Iterable[StoredEntity], claim: Claim = Claim.LEAVE
) -> tuple[Change, ...]:
    """What makes the stored state the site's, as far as the site owns it; in a fixed order.

    Taking, the site comes to own all that it says, and what others have on nodes that it no
    longer has goes with these.

    Raises:
        InputError: something that must change belongs to others; each is named.
    """
    stored = {one.entity: one for one in current}
    wanted = {one.entity: one for one in site.entities}
    gone = {one.entity for one in stored.values() if one.entity not in wanted and _ours(one)}
    if claim is Claim.TAKE:
        gone |= {one.entity for one in _left_on(gone, stored)}
    elif conflicts := [
        *(error for one in site.entities for error in _in_the_way(one, stored.get(one.entity))),
        *_orphans(gone, stored),
    ]:
        raise InputError([*_folded(conflicts)][:CONFLICTS_MAX])
    settled = wanted.keys() | gone
    return (
        # What is on a node goes before it, and comes after it.
        *(Undeclare(entity) for entity in sorted(gone, key=_nodes_first, reverse=True)),
        *(
            change
            for entity in sorted(wanted, key=_nodes_first)
            for change in _entity_changes(wanted[entity], stored.get(entity), claim)
        ),
        *(change for one in _sorted(stored) for change in _unset(one, settled)),
    )


def _entity_changes(
    wanted: SiteEntity, stored: StoredEntity | None, claim: Claim
) -> Iterator[Change]:
    if (
        stored is None
        or stored.attributes != dict(wanted.attributes)
        or (claim is Claim.TAKE and not _ours(stored))
    ):
        yield Declare(wanted.entity, dict(wanted.attributes), SITE_OWNER)
    held = {} if stored is None else stored.desired
    for name, value in sorted(wanted.desired.items()):
        if not _is_so(held.get(name), value, claim):
            yield SetDesired(wanted.entity, name, value, SITE_OWNER)
    for name in sorted(held.keys() - wanted.desired.keys()):
        if held[name].owner == SITE_OWNER:
            yield UnsetDesired(wanted.entity, name)


def _is_so(held: Desired | None, value: str | int, claim: Claim) -> bool:
    """Whether a value needs no change; what another owner wants too needs none, unless taken."""
    if held is None or held.value != value:
        return False
    return claim is Claim.LEAVE or held.owner == SITE_OWNER


def _unset(stored: StoredEntity, settled: Collection[EntityId]) -> Iterator[Change]:
    """Another's entity that the site no longer names keeps nothing of the site's."""
    if stored.entity in settled or _ours(stored):
        return
    for name, desired in sorted(stored.desired.items()):
        if desired.owner == SITE_OWNER:
            yield UnsetDesired(stored.entity, name)


@dataclass(frozen=True, slots=True)
class _Conflict:
    """What stands against an entity's change, in words before and behind its name."""

    before: str
    entity: EntityId
    after: str
    owner: str


def _folded(conflicts: Iterable[_Conflict]) -> Iterator[ConflictError]:
    """One error for all that differ only in the node."""
    alike: dict[tuple[str, str, str, str], list[EntityId]] = {}
    for one in conflicts:
        key = one.before, one.entity.title, one.after, one.owner
        alike.setdefault(key, []).append(one.entity)
    for (before, _, after, owner), entities in alike.items():
        do = f"have {owner} release it, leave it out of the site file, or take it: --take"
        yield ConflictError(f"{before}{fold_entities(entities)}{after}", do=do, code=Code.OWNED)


def _in_the_way(wanted: SiteEntity, stored: StoredEntity | None) -> Iterator[_Conflict]:
    if stored is None:
        return
    if not _ours(stored) and stored.attributes != dict(wanted.attributes):
        yield _Conflict("", wanted.entity, f" was declared by {stored.owner}", stored.owner)
    for name, value in wanted.desired.items():
        held = stored.desired.get(name)
        if held is not None and held.owner != SITE_OWNER and held.value != value:
            after = f" belongs to {held.owner}, who wants {held.value}"
            yield _Conflict(f"{name} of ", wanted.entity, after, held.owner)


def _orphans(
    gone: Collection[EntityId], stored: Mapping[EntityId, StoredEntity]
) -> Iterator[_Conflict]:
    """What others own of entities that go, and on nodes that go."""
    for one in _sorted(stored):
        for name, desired in sorted(one.desired.items() if one.entity in gone else ()):
            if desired.owner != SITE_OWNER:
                after = f" would be removed, but its {name} belongs to {desired.owner}"
                yield _Conflict("", one.entity, after, desired.owner)
    for one in _left_on(gone, stored):
        yield _Conflict(
            "", one.entity, f" is {one.owner}'s, but its node would be removed", one.owner
        )


def _left_on(
    gone: Collection[EntityId], stored: Mapping[EntityId, StoredEntity]
) -> Iterator[StoredEntity]:
    """What is on nodes that go, and would not go by itself."""
    nodes = {entity.name for entity in gone if entity.kind == NODE}
    for one in _sorted(stored):
        if one.entity.node in nodes and one.entity not in gone:
            yield one


def _ours(stored: StoredEntity) -> bool:
    return stored.owner == SITE_OWNER


def _nodes_first(entity: EntityId) -> tuple[bool, EntityId]:
    return entity.kind != NODE, entity


def _sorted(stored: Mapping[EntityId, StoredEntity]) -> list[StoredEntity]:
    return [stored[entity] for entity in sorted(stored)]
