"""From a site file to the changes of what is stored: what `site` owns is set and pruned."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from haptera.api.shapes import SiteFile
from haptera.config.site import Site, SiteEntity, parse_site
from haptera.model.changes import (
    Change,
    Declare,
    SetDesired,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.entity import EntityId
from haptera.model.errors import ConflictError, HapteraError, InputError

SITE_OWNER: Final = "site"
CONFLICTS_MAX = 20


def site_changes(
    sources: Sequence[SiteFile],
    constants: Mapping[str, str],
    current: Sequence[StoredEntity],
    cluster: str,
) -> tuple[Change, ...]:
    """What the files of a site change in this cluster.

    Raises:
        HapteraError: they are wrong, for another cluster, or in another owner's way.
    """
    site = parse_site(sources, constants)
    if site.cluster != cluster:
        raise ConflictError(
            f"this is a site file of cluster {site.cluster}; here is cluster {cluster}",
            where=sources[0].name,
            do="apply it to its own cluster, or correct its name",
        )
    return changes(site, current)


def changes(site: Site, current: Iterable[StoredEntity]) -> tuple[Change, ...]:
    """What makes the stored state the site's, as far as the site owns it; in a fixed order.

    Raises:
        InputError: something that must change belongs to others; each is named.
    """
    stored = {one.entity: one for one in current}
    wanted = {one.entity: one for one in site.entities}
    conflicts: list[HapteraError] = [
        *(error for one in site.entities for error in _in_the_way(one, stored.get(one.entity))),
        *_orphans(wanted.keys(), stored),
    ]
    if conflicts:
        raise InputError(conflicts[:CONFLICTS_MAX])
    gone = [one.entity for one in stored.values() if one.entity not in wanted and _ours(one)]
    return (
        # What is on a node goes before it, and comes after it.
        *(Undeclare(entity) for entity in sorted(gone, key=_nodes_first, reverse=True)),
        *(
            change
            for entity in sorted(wanted, key=_nodes_first)
            for change in _entity_changes(wanted[entity], stored.get(entity))
        ),
        *(change for one in _sorted(stored) for change in _unset(one, wanted.keys())),
    )


def _entity_changes(wanted: SiteEntity, stored: StoredEntity | None) -> Iterator[Change]:
    if stored is None or stored.attributes != dict(wanted.attributes):
        yield Declare(wanted.entity, dict(wanted.attributes), SITE_OWNER)
    held = {} if stored is None else stored.desired
    for name, value in sorted(wanted.desired.items()):
        if name not in held or held[name].value != value:
            yield SetDesired(wanted.entity, name, value, SITE_OWNER)
    for name in sorted(held.keys() - wanted.desired.keys()):
        if held[name].owner == SITE_OWNER:
            yield UnsetDesired(wanted.entity, name)


def _unset(stored: StoredEntity, wanted: Iterable[EntityId]) -> Iterator[Change]:
    """Another's entity that the site no longer names keeps nothing of the site's."""
    if stored.entity in wanted or _ours(stored):
        return
    for name, desired in sorted(stored.desired.items()):
        if desired.owner == SITE_OWNER:
            yield UnsetDesired(stored.entity, name)


def _in_the_way(wanted: SiteEntity, stored: StoredEntity | None) -> Iterator[ConflictError]:
    if stored is None:
        return
    if not _ours(stored) and stored.attributes != dict(wanted.attributes):
        yield _conflict(f"{wanted.entity} was declared by {stored.owner}", stored.owner)
    for name, value in wanted.desired.items():
        held = stored.desired.get(name)
        if held is not None and held.owner != SITE_OWNER and held.value != value:
            what = f"{name} of {wanted.entity} belongs to {held.owner}, who wants {held.value}"
            yield _conflict(what, held.owner)


def _orphans(
    wanted: Iterable[EntityId], stored: Mapping[EntityId, StoredEntity]
) -> Iterator[ConflictError]:
    """What others own of entities that go, and on nodes that go."""
    gone = {one.entity for one in stored.values() if one.entity not in wanted and _ours(one)}
    nodes = {entity.name for entity in gone if entity.kind == "node"}
    for one in _sorted(stored):
        if one.entity in gone:
            for name, desired in sorted(one.desired.items()):
                if desired.owner != SITE_OWNER:
                    what = f"{one.entity} would go, but {name} of it belongs to {desired.owner}"
                    yield _conflict(what, desired.owner)
        elif one.entity.node in nodes:
            what = f"node:{one.entity.node} would go, but {one.owner} has {one.entity} on it"
            yield _conflict(what, one.owner)


def _conflict(what: str, owner: str) -> ConflictError:
    return ConflictError(what, do=f"let {owner} give it up, or leave it out of the site file")


def _ours(stored: StoredEntity) -> bool:
    return stored.owner == SITE_OWNER


def _nodes_first(entity: EntityId) -> tuple[bool, EntityId]:
    return entity.kind != "node", entity


def _sorted(stored: Mapping[EntityId, StoredEntity]) -> list[StoredEntity]:
    return [stored[entity] for entity in sorted(stored)]
