"""News of an entity, found by comparing it with its last publication."""

from collections.abc import Iterable

import msgspec

from haptera.core.state.row import EntityState, Published
from haptera.core.state.table import EntityTable
from haptera.core.views.query import doing, view
from haptera.core.views.unblock import again_at
from haptera.model.effects import Publish
from haptera.model.entity import EntityId
from haptera.model.news import EVERY_TYPE, News, Types

_GONE: Types = frozenset({News.GONE})


def publish(table: EntityTable, changed: Iterable[EntityId]) -> Publish | None:
    """The news of these entities; None where nothing is new.

    Who changes an entity need not say in what: only growing older is no news.
    """
    told = [(entity, _news(table.get(entity))) for entity in sorted(changed, key=str)]
    entities = tuple(entity for entity, types in told if types)
    return Publish(entities, tuple(types for _, types in told if types)) if entities else None


def decides_news(row: EntityState) -> bool:
    """True if its last decision changed what is shown of it.

    To make its view takes far longer; and it is made where this says so.
    """
    stance, report = row.stance, row.report
    decided = (
        *(stance.verdict, stance.since, stance.plan, row.attempts.error),
        *(report.lost_at, report.suspect, again_at(row, 0), doing(row, 0)),
    )
    before, row.decided = row.decided, decided
    return decided != before


def check_published(rows: Iterable[EntityState]) -> None:
    """Assert that listeners were told of all that is shown."""
    for row in rows:
        # One that was never published has not changed since it is there.
        assert row.published in (None, _published(row)), (row.id, view(row, 0))


def _news(row: EntityState | None) -> Types:
    if row is None:
        return _GONE
    before, row.published = row.published, _published(row)
    if before is None:
        return EVERY_TYPE - _GONE
    pairs = zip((News.DESIRED, News.OBSERVED, News.CONDITION), before, row.published, strict=True)
    return frozenset(one for one, was, now in pairs if was != now)


def _published(row: EntityState) -> Published:
    """What stands for all that is shown of it, by type: hashes, for there are many entities."""
    # Seen from time 0 nothing is older than at another time.
    shown = view(row, 0)
    desired = (shown.revision, shown.desired, shown.attributes)
    rest = msgspec.structs.replace(shown, revision=0, desired={}, attributes={}, observed={})
    return _hash(desired), _hash(shown.observed), _hash(rest)


def _hash(part: object) -> int:
    return hash(msgspec.msgpack.encode(part))
