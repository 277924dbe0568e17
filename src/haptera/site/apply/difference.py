"""Where a site and what is stored differ, value by value."""

from collections.abc import Iterable, Iterator, Mapping

from haptera.core.desired.ownership import Claim
from haptera.model.changes import (
    Declare,
    SetDesired,
    StoredEntity,
    Undeclare,
    UnsetDesired,
)
from haptera.model.entity import EntityId
from haptera.rest.schemas import DifferenceView
from haptera.site.apply.changes import SITE_OWNER, changes
from haptera.site.model.site import Site


def difference(site: Site, current: Iterable[StoredEntity]) -> Iterator[DifferenceView]:
    """All that would be otherwise if the site were applied, and took what others own.

    What an owner wants just as the site does is no difference.
    """
    stored = {one.entity: one for one in current}
    for change in changes(site, stored.values(), Claim.TAKE):
        match change:
            case Declare(entity, attributes):
                yield from _declared(entity, stored.get(entity), attributes)
            case Undeclare(entity):
                yield from _undeclared(stored[entity])
            case SetDesired(entity, name, value):
                held = stored[entity].desired.get(name) if entity in stored else None
                if held is None:
                    yield DifferenceView(str(entity), name, None, value)
                elif held.value != value:
                    yield DifferenceView(str(entity), name, held.value, value, _other(held.owner))
            case UnsetDesired(entity, name):
                yield DifferenceView(str(entity), name, stored[entity].desired[name].value, None)
            case _:
                raise AssertionError("a site holds no intents")


def _declared(
    entity: EntityId, stored: StoredEntity | None, attributes: Mapping[str, str]
) -> Iterator[DifferenceView]:
    """An entity that is new, or has other attributes."""
    held: Mapping[str, str] = {} if stored is None else stored.attributes
    owner = None if stored is None else _other(stored.owner)
    if stored is None:
        yield DifferenceView(str(entity), None, None, "declared")
    for name in sorted(held.keys() | attributes.keys()):
        if held.get(name) != attributes.get(name):
            yield DifferenceView(str(entity), name, held.get(name), attributes.get(name), owner)


def _undeclared(stored: StoredEntity) -> Iterator[DifferenceView]:
    entity = str(stored.entity)
    yield DifferenceView(entity, None, "declared", None, _other(stored.owner))
    for name, text in sorted(stored.attributes.items()):
        yield DifferenceView(entity, name, text, None, _other(stored.owner))
    for name, held in sorted(stored.desired.items()):
        yield DifferenceView(entity, name, held.value, None, _other(held.owner))


def _other(owner: str) -> str | None:
    """Whose it is, where it is not the site's."""
    return None if owner == SITE_OWNER else owner
