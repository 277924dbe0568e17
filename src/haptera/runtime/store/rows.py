"""Rows of `state.db` as values; one that no parent writes is refused by its table and key.

SQLite keeps any value in any column, and who can write the file can write any row into it.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar

import msgspec

from haptera.model.errors import LimitError, ParseError, StorageError
from haptera.model.text import showable

# Of a key and of a reason, which may be anything.
_CHARS_MAX: Final = 100
_DO: Final = "restore it from a backup, or delete the row by sqlite3 while no parent runs"

Whole = Annotated[int, msgspec.Meta(ge=0)]
Row = TypeVar("Row")
Made = TypeVar("Made")


def read_rows(
    connection: sqlite3.Connection,
    table: str,
    query: str,
    row: type[Row],
    make: Callable[[Row], Made],
    parameters: Sequence[Any] | Mapping[str, Any] = (),
) -> Iterator[Made]:
    """The values that `make` makes of the rows that a query finds; the first column is the key.

    Raises:
        StorageError: a column is not of the type that it has in `row`, or means nothing.
    """
    found = connection.execute(query, parameters)
    while (values := _next(found, table)) is not None:
        try:
            made = make(msgspec.convert(values, row))
        except (ValueError, LookupError, ParseError, LimitError) as error:
            raise _unreadable(table, f", row {values[0]!r}", error) from error
        yield made


def read_row(connection: sqlite3.Connection, table: str, query: str, row: type[Row]) -> Row:
    """The one row that a table always has.

    Raises:
        StorageError: as `read_rows`, or there is none.
    """
    for found in read_rows(connection, table, query, row, lambda values: values):
        return found
    raise _unreadable(table, "", ValueError("its row is missing"))


def _next(found: sqlite3.Cursor, table: str) -> tuple[Any, ...] | None:
    try:
        row: tuple[Any, ...] | None = found.fetchone()
    except sqlite3.OperationalError as error:
        # Errors of the sqlite3 module itself have no code: a text is no UTF-8.
        if hasattr(error, "sqlite_errorcode"):
            raise
        raise _unreadable(table, "", error) from error
    return row


def _unreadable(table: str, key: str, error: Exception) -> StorageError:
    return StorageError(
        f"cannot be read: {showable(str(error), _CHARS_MAX)}",
        where=f"state.db, table {table}{showable(key, _CHARS_MAX)}",
        do=_DO,
    )
