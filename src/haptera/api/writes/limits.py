"""What a token that is limited to some entities may not do to these: what reaches beyond them."""

from collections.abc import Iterator
from typing import Final

import msgspec

from haptera.core.desired.ownership import Claim
from haptera.kinds import KINDS, module
from haptera.model.changes import StoredEntity
from haptera.model.declared.secrets import Reference, references
from haptera.model.errors import Code, HapteraError
from haptera.rest.schemas import EntityPatch
from haptera.selectors.selector import Selector

_MODULE: Final = module.kind.name


def check_reach(within: Selector, held: StoredEntity, patch: EntityPatch, claim: Claim) -> None:
    """Refuse a patch of an entity within the limit that reaches beyond it.

    Raises:
        HapteraError: it does; the message says in what.
    """
    for what in _beyond(held, patch, claim):
        raise HapteraError(
            f"the token is limited to {within}, and {what}",
            where=patch.entity,
            do="use a token without this limit",
            code=Code.OUTSIDE_LIMIT,
        )


def _beyond(held: StoredEntity, patch: EntityPatch, claim: Claim) -> Iterator[str]:
    kind = KINDS[held.entity.kind]
    if claim is Claim.TAKE:
        yield "may not take what belongs to another owner"
    for name, text in sorted(patch.attributes.items()):
        attribute = kind.attribute(name)
        if attribute is not None and attribute.wide and held.attributes.get(name) != text:
            yield f"{name} affects more than {held.entity}"
    if held.entity.kind == _MODULE:
        before = held.desired.get(module.settings.name)
        after = _named(patch.desired.get(module.settings.name))
        for one in sorted(after - _named(None if before is None else before.value), key=str):
            yield f"may not add a reference to the secret {one}"


def _named(settings: object) -> set[Reference]:
    """The secrets that settings name; what is wrong with them is said where they are checked."""
    try:
        return set(references(msgspec.json.decode(str(settings or "{}"))))
    except (ValueError, RecursionError, HapteraError):
        return set()
