"""Rows of a file as values; one that no parent writes is refused by its file, table and key.

SQLite keeps any value in any column, and who can write the file can write any row into it.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec

from haptera.model.errors import LimitError, ParseError, StorageError
from haptera.model.text import showable
from haptera.model.walltime import WALL_S_MAX

# Of a key and of a reason, which may be anything.
_CHARS_MAX: Final = 100
_DO: Final = "restore it from a backup, or delete the row by sqlite3 while no parent runs"

Whole = Annotated[int, msgspec.Meta(ge=0)]
WallTime = Annotated[float, msgspec.Meta(ge=0, le=WALL_S_MAX)]
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
            raise _unreadable(connection, table, f", row {values[0]!r}", error) from error
        yield made


def read_row(connection: sqlite3.Connection, table: str, query: str, row: type[Row]) -> Row:
    """The one row that a table always has.

    Raises:
        StorageError: as `read_rows`, or there is none.
    """
    for found in read_rows(connection, table, query, row, lambda values: values):
        return found
    raise _unreadable(connection, table, "", ValueError("its row is missing"))


def _next(found: sqlite3.Cursor, table: str) -> tuple[Any, ...] | None:
    try:
        row: tuple[Any, ...] | None = found.fetchone()
    except sqlite3.OperationalError as error:
        # Errors of the sqlite3 module itself have no code: a text is no UTF-8.
        if hasattr(error, "sqlite_errorcode"):
            raise
        raise _unreadable(found.connection, table, "", error) from error
    return row


def _unreadable(
    connection: sqlite3.Connection, table: str, key: str, error: Exception
) -> StorageError:
    _, _, file = connection.execute("PRAGMA database_list").fetchone()
    return StorageError(
        f"cannot be read: {showable(str(error), _CHARS_MAX)}",
        where=f"{Path(file).name}, table {table}{showable(key, _CHARS_MAX)}",
        do=_DO,
    )
