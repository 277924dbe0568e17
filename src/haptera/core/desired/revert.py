"""Undoing a write: each value as it was before, where it still is what the write made it."""

from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec

from haptera.model.answers.past import Changed
from haptera.model.changes import Change, Declare, SetDesired, StoredEntity, Undeclare, UnsetDesired
from haptera.model.entity import EntityId, parse_entity
from haptera.model.errors import ConflictError, InputError
from haptera.selectors.selector import fold_entities

Held = Callable[[EntityId], StoredEntity | None]


def revert(changes: Iterable[Changed], held: Held) -> tuple[Change, ...]:
    """What undoes these, of one write, latest first; a value goes back to its owner before.

    Raises:
        InputError: some of it was changed since, or has values that the write did not give it.
    """
    undone = _net(changes)
    mine: dict[str, set[str | None]] = {}
    for one in undone:
        mine.setdefault(one.entity, set()).add(one.name)
    conflicts: dict[str, list[EntityId]] = {}
    for one in undone:
        entity = parse_entity(one.entity)
        if (text := _conflict(one, held(entity), mine[one.entity])) is not None:
            conflicts.setdefault(text, []).append(entity)
    if conflicts:
        raise InputError([_told(text, some) for text, some in conflicts.items()])
    return tuple(_undo(undone))


def _told(text: str, entities: Iterable[EntityId]) -> ConflictError:
    """The words that all of these share, said once."""
    do = "revert the later change first, or set the value again"
    return ConflictError(text, where=fold_entities(entities), do=do)


def _net(changes: Iterable[Changed]) -> list[Changed]:
    """What came of the changes of each value together, entities before their values."""
    net: dict[tuple[str, str], Changed] = {}
    for one in changes:
        key = one.entity, one.name or ""
        last = net.get(key, one)
        net[key] = msgspec.structs.replace(
            one, after=last.after, owner=one.owner if last.after is None else last.owner
        )
    return [net[key] for key in sorted(net) if not _is_nothing(net[key])]


def _is_nothing(one: Changed) -> bool:
    return one.before == one.after and one.owner in (one.owner_before, None)


def _conflict(one: Changed, there: StoredEntity | None, mine: Collection[str | None]) -> str | None:
    """Why this cannot be undone, where `mine` are the values that the write gave its entity."""
    now = _now(one, there)
    if now != one.after:
        is_now = "is not there" if now is None else f"is {now}"
        was_made = "was taken away" if one.after is None else f"was made {one.after}"
        return f"{one.name or 'it'} {is_now} now, but {was_made} then: it changed since"
    was_declared = one.name is None and one.before is None
    desired = there.desired if was_declared and there is not None else {}
    given = sorted(name for name in desired if name not in mine)
    return f"was given {', '.join(given)} since it was declared" if given else None


def _now(one: Changed, there: StoredEntity | None) -> str | int | None:
    if there is None:
        return None
    if one.name is None:
        return msgspec.json.encode(there.attributes, order="sorted").decode()
    value = there.desired.get(one.name)
    return None if value is None else value.value


def _undo(undone: Iterable[Changed]) -> Iterator[Change]:
    gone = {one.entity for one in undone if one.name is None and one.before is None}
    for one in undone:
        entity, owner = parse_entity(one.entity), one.owner_before or one.owner
        if one.entity in gone:
            if one.name is None:
                yield Undeclare(entity)
        elif one.name is None:
            attributes = msgspec.json.decode(str(one.before), type=dict[str, str])
            yield Declare(entity, attributes, owner)
        elif one.before is None:
            yield UnsetDesired(entity, one.name)
        else:
            yield SetDesired(entity, one.name, one.before, owner)
