"""Reading what was written down: what happened, and how all was at a time."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from haptera.model.answers.past import Happened, PastView, Sort
from haptera.model.changes import StoredEntity
from haptera.model.entity import EntityId, parse_entity
from haptera.runtime.store.event_log_writer import days, file_of
from haptera.runtime.store.history_sql import reading
from haptera.runtime.store.rows import WallTime, read_rows

Chosen = Callable[[EntityId], bool]
_TELLING: Final = (Sort.SEEN, Sort.STANDS, Sort.GONE)


@dataclass(slots=True)
class KnownThen:
    """What was known of an entity at a time, and where it stood and why."""

    observed: dict[str, str] = field(default_factory=dict)
    condition: str | None = None
    why: str | None = None

    def view(self, entity: EntityId, stored: StoredEntity | None) -> PastView:
        """The entity as it was then; what is `stored` was desired of it."""
        desired = {} if stored is None else stored.desired
        return PastView(
            str(entity),
            {} if stored is None else stored.attributes,
            {name: one.value for name, one in sorted(desired.items())},
            dict(sorted(self.observed.items())),
            self.condition,
            self.why,
        )


def last_happenings(folder: Path, chosen: Chosen, *, count_max: int) -> list[Happened]:
    """The last that happened to what is chosen, and to the record itself, latest first."""
    found: list[Happened] = []
    for path in reversed(days(folder)):
        for entity, one in _read(path, "ORDER BY id DESC"):
            if entity is None or chosen(entity):
                found.append(one)
                if len(found) == count_max:
                    return found
    return found


def happenings_since(folder: Path, names: Collection[str], since: float) -> Iterator[Happened]:
    """All steps that ended, and what was seen of these variables, in order of time.

    It begins with how all was when the first day began. Of one moment power comes first, by which
    the rest is understood: the parts of a turn are recorded by their names.
    """
    first, marks = file_of(folder, since), ", ".join("?" * len(names))
    rest = (
        f"WHERE sort = 'tried' OR (sort = 'seen' AND name IN ({marks}))"
        " ORDER BY at_s, name IS NOT 'power', id"
    )
    for path in days(folder):
        if path >= first:
            yield from (one for _, one in _read(path, rest, *names))


def known_at(folder: Path, chosen: Chosen, at_s: float) -> dict[EntityId, KnownThen]:
    """How what is chosen was at a time, as far as it was written down."""
    path = file_of(folder, at_s)
    earlier = [one for one in days(folder) if one <= path]
    found: dict[EntityId, KnownThen] = {}
    if not earlier:
        return found
    for entity, one in _read(earlier[-1], "WHERE at_s <= ? ORDER BY id", at_s):
        if one.sort is Sort.BEGUN:
            found.clear()
        elif one.sort in _TELLING and entity is not None and chosen(entity):
            _take(found, entity, one)
    return found


def _take(found: dict[EntityId, KnownThen], entity: EntityId, one: Happened) -> None:
    if one.sort is Sort.GONE:
        found.pop(entity, None)
        return
    known = found.setdefault(entity, KnownThen())
    if one.sort is Sort.STANDS:
        known.condition, known.why = one.value, one.note
    elif one.name is not None and one.value is not None:
        known.observed[one.name] = one.value
    elif one.name is not None:
        known.observed.pop(one.name, None)


class _HappenedRow(NamedTuple):
    id: int
    at_s: WallTime
    entity: str
    sort: Sort
    name: str | None
    value: str | None
    note: str | None


def _read(
    path: Path, rest: str, *values: float | str
) -> Iterator[tuple[EntityId | None, Happened]]:
    """What happened, each with its entity; None: to the record itself."""
    query = f"SELECT id, at_s, entity, sort, name, value, note FROM happened {rest}"
    with reading(path) as connection:
        yield from read_rows(connection, "happened", query, _HappenedRow, _happened, values)


def _happened(row: _HappenedRow) -> tuple[EntityId | None, Happened]:
    return parse_entity(row.entity) if row.entity else None, Happened(*row[1:])


def past_views(
    desired: Mapping[EntityId, StoredEntity], known: Mapping[EntityId, KnownThen]
) -> list[PastView]:
    """Each entity as it was at a time, by what was desired of it then and what was known."""
    return [
        _past(entity, desired.get(entity), known.get(entity, KnownThen()))
        for entity in sorted(desired.keys() | known.keys(), key=str)
    ]


def _past(entity: EntityId, stored: StoredEntity | None, known: KnownThen) -> PastView:
    desired = {} if stored is None else stored.desired
    return PastView(
        str(entity),
        {} if stored is None else stored.attributes,
        {name: one.value for name, one in sorted(desired.items())},
        dict(sorted(known.observed.items())),
        known.condition,
        known.why,
    )
