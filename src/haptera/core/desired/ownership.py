"""Changes by an owner, and the owners that stand in their way."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from haptera.model.answers.views import DesiredView
from haptera.model.changes import Change, Declare, Desired, SetDesired, Undeclare, UnsetDesired
from haptera.model.declared.desired_check import (
    check_attributes,
    check_desired,
    find_desirable,
    nearest,
)
from haptera.model.declared.schema import Kind
from haptera.model.entity import EntityId
from haptera.model.errors import Code, ConflictError, HapteraError

# Desired values by name, each with its owner, as stored or as shown.
Held = Mapping[str, Desired | DesiredView]
Patch = Mapping[str, str | int | None]


class Claim(StrEnum):
    """What is done about a value that belongs to another owner: refuse, or take it."""

    LEAVE = "leave"
    TAKE = "take"


def desire(
    kind: Kind,
    entity: EntityId,
    held: Held,
    patch: Patch,
    owner: str,
    claim: Claim = Claim.LEAVE,
) -> Iterator[Change]:
    """A merge patch of desired values: a value sets, None unsets; what is so already is no change.

    Raises:
        ConflictError: a value belongs to another owner, and is not to be taken.
        HapteraError: the kind has no such variable, or the variable no such value.
    """
    for name, value in sorted(patch.items()):
        find_desirable(kind, name)
        # First: what can never be so is no question of who owns it.
        checked = None if value is None else check_desired(kind, name, value)
        one = held.get(name)
        if one is not None and one.owner != owner and claim is Claim.LEAVE:
            raise ConflictError(
                f"{name} of {entity} belongs to {one.owner}, who wants {one.value}",
                do=f"have {one.owner} release it",
            )
        if checked is not None:
            if one is None or (one.value, one.owner) != (checked, owner):
                yield SetDesired(entity, name, checked, owner)
        elif one is not None:
            yield UnsetDesired(entity, name)


def declare(
    kinds: Mapping[str, Kind],
    entity: EntityId,
    held: Mapping[str, str] | None,
    attributes: Mapping[str, str],
    owners: tuple[str | None, str],
) -> Iterator[Change]:
    """An entity with these attributes; `owners` are who has declared it, and who does now.

    Raises:
        ConflictError: another owner has declared it.
        HapteraError: there is no such kind, or the kind has no such attribute.
    """
    before, owner = owners
    kind = kinds.get(entity.kind)
    if kind is None:
        raise HapteraError(
            f"there is no kind {entity.kind!r}",
            do=nearest(entity.kind, kinds),
            code=Code.UNKNOWN_NAME,
        )
    checked = check_attributes(kind, attributes)
    if before not in (None, owner):
        raise ConflictError(f"{entity} was declared by {before}", do=f"have {before} release it")
    if held != checked:
        yield Declare(entity, checked, owner)


def undeclare(
    entity: EntityId,
    held: Held,
    on_it: Iterable[EntityId],
    owners: tuple[str | None, str],
) -> Iterator[Change]:
    """An entity goes; one that is not there has gone already.

    Raises:
        ConflictError: it is another's, or others own values of it, or something is on it.
    """
    before, owner = owners
    if before is None:
        return
    if others := sorted({before, *(one.owner for one in held.values())} - {owner}):
        raise ConflictError(
            f"{entity} also belongs to {others[0]}", do=f"have {others[0]} release it"
        )
    if there := sorted(map(str, on_it)):
        raise ConflictError(f"{there[0]} is on {entity}", do="remove that first")
    yield Undeclare(entity)
