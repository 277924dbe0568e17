"""Reading from `state.db` what was changed, beside the writer and never in its way."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from haptera.kinds.rules import freeze
from haptera.model.answers.past import Changed, Deed, Page
from haptera.model.entity import EntityId, parse_entity
from haptera.model.errors import Code, HapteraError, StorageError
from haptera.model.walltime import utc_text
from haptera.runtime.store.rows import WallTime, Whole, read_rows
from haptera.selectors.covering import covers
from haptera.selectors.selector import ALL, Selector, parse_selector

_ROWS: Final = (
    "SELECT h.id, coalesce(h.written, h.revision), h.at_s, h.entity, h.name, h.before, h.after,"
    " h.owner, h.owner_before, w.who, w.why"
    " FROM history h LEFT JOIN writes w ON w.revision = h.written"
)
# Each row is looked at once, however many there are: there is no index of writes.
OF_WRITE: Final = (
    "WITH meant AS (SELECT written, min(revision) AS first FROM history"
    " WHERE written = (SELECT min(written) FROM history WHERE written >= ?1))"
    f" {_ROWS} WHERE h.written = (SELECT written FROM meant WHERE first <= ?1) ORDER BY h.id DESC"
)
DEEDS: Final = (
    "WITH counted AS (SELECT written, count(*) AS changes FROM history"
    " WHERE :all OR concerns(entity, name, before, after) GROUP BY written)"
    " SELECT writes.rowid, at_s, who, coalesce(changes, 0), revision, why"
    " FROM writes LEFT JOIN counted ON written = revision WHERE :all OR changes > 0"
    " UNION ALL SELECT id, at_s, who, what, NULL, NULL FROM deeds"
    " WHERE :all OR concerns(entity, NULL, NULL, NULL)"
    " ORDER BY 2 DESC, 5 DESC, 1 DESC LIMIT :count_max"
)
# Of so many rows it is remembered whether they concern who asks.
CONCERNS_CACHED_MAX: Final = 10_000


def read_changes(
    path: Path, chosen: Callable[[EntityId], bool], *, before: int | None, count_max: int
) -> Page:
    """The last changes of what is chosen, latest first, or those before an earlier page's end.

    Raises:
        HapteraError: the file cannot be read.
    """
    found: list[Changed] = []
    with reading(path) as connection:
        query = f"{_ROWS} WHERE ?1 IS NULL OR h.id < ?1 ORDER BY h.id DESC"
        for number, entity, one in _changes(connection, query, before):
            if chosen(entity):
                found.append(one)
                if len(found) == count_max:
                    return Page(found, number)
    return Page(found, None)


def read_changes_since(
    path: Path, chosen: Callable[[EntityId], bool], at_s: float, revision: int
) -> list[Changed]:
    """All changes of what is chosen after a time, up to a revision, latest first.

    Raises:
        HapteraError: the file cannot be read, or no longer holds them all.
    """
    found: list[Changed] = []
    oldest = 1
    with reading(path) as connection:
        for number, entity, one in _changes(connection, f"{_ROWS} ORDER BY h.id DESC"):
            oldest = number
            if one.at_s <= at_s:
                return found
            if one.revision <= revision and chosen(entity):
                found.append(one)
    if oldest > 1:
        raise HapteraError(
            "the desired state of that time is no longer known",
            do=f"ask for a time after {utc_text(int(found[-1].at_s))}" if found else None,
            code=Code.HISTORY_GONE,
        )
    return found


def read_write(path: Path, revision: int) -> list[Changed]:
    """All changes of the write that made this revision, latest first; none if it is not known.

    Raises:
        HapteraError: the file cannot be read, or may no longer hold them all.
    """
    with reading(path) as connection:
        rows = [*_changes(connection, OF_WRITE, revision)]
        (oldest,) = connection.execute("SELECT min(id) FROM history").fetchone()
    if rows and rows[-1][0] == oldest > 1:
        what = f"part of the write of revision {revision} may already be deleted from the history"
        raise HapteraError(
            what,
            do="set its values again: `haptera history` shows the rest",
            code=Code.HISTORY_GONE,
        )
    return [one for _, _, one in rows]


class _ChangedRow(NamedTuple):
    id: int
    revision: Whole
    at_s: WallTime
    entity: str
    name: str | None
    before: str | int | None
    after: str | int | None
    owner: str
    owner_before: str | None
    who: str | None
    why: str | None


def _changes(
    connection: sqlite3.Connection, query: str, *parameters: int | None
) -> Iterator[tuple[int, EntityId, Changed]]:
    """Each change that a query finds, with its number and its entity."""
    return read_rows(
        connection,
        "history",
        query,
        _ChangedRow,
        lambda row: (row[0], parse_entity(row[3]), Changed(*row[1:])),
        parameters,
    )


def read_deeds(path: Path, within: Selector | None, *, count_max: int) -> list[Deed]:
    """The last that people and programs have asked for, latest first; of all, or of what is within.

    Raises:
        HapteraError: the file cannot be read.
    """
    with reading(path) as connection:
        concerns = _concerns(parse_selector(ALL) if within is None else within)
        connection.create_function("concerns", 4, concerns)
        wanted = {"all": within is None, "count_max": count_max}
        return [*read_rows(connection, "writes or deeds", DEEDS, _DeedRow, _deed, wanted)]


class _DeedRow(NamedTuple):
    id: int
    at_s: WallTime
    who: str
    what: str | int
    revision: Whole | None
    why: str | None


def _deed(row: _DeedRow) -> Deed:
    _, at_s, who, what, revision, why = row
    # Of a write it is how many changes it made.
    made = what if isinstance(what, str) else f"{what} change{'' if what == 1 else 's'}"
    return Deed(at_s, who, made, revision, why)


def _concerns(within: Selector) -> Callable[..., bool]:
    """Whether a row of the history, or a deed of an entity, is about what is within.

    A freeze is about what it is of; what is about no entity is about the whole cluster.
    """

    @lru_cache(CONCERNS_CACHED_MAX)
    def concerns(key: str | None, name: str | None, *values: str | int | None) -> bool:
        try:
            entity = parse_entity(key) if isinstance(key, str) else None
            if entity is None or entity.kind != freeze.kind.name:
                return entity is not None and within.could_mean(entity)
            told = (str(one) for one in values if one is not None and name == freeze.of.name)
            return any(covers(within, parse_selector(one)) for one in told)
        except HapteraError:  # No entity could be called so.
            return False

    return concerns


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """The file, to be read only.

    Raises:
        StorageError: it cannot be.
    """
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise StorageError(
            f"cannot be read: {error}", where=str(path), do="check the disk"
        ) from error
