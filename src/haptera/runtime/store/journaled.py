"""A connection that notes what it writes, so that another file can be made to follow."""

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

import msgspec

# With what each statement begins that changes rows; all others leave the file as it is.
_WRITES: Final = ("INSERT", "UPDATE", "DELETE")

Value = int | float | str | bytes | None
Statement = tuple[str, tuple[Value, ...]]

_ENCODER: Final = msgspec.msgpack.Encoder()
# Untyped, as a union of texts and bytes is none that msgspec can check; SQLite takes what it knows.
_DECODER: Final = msgspec.msgpack.Decoder(list[tuple[str, tuple[Any, ...]]])


class JournaledConnection(sqlite3.Connection):
    """`journal` holds what was written since it was last cleared; None: nothing is noted."""

    journal: list[Statement] | None = None

    def execute(self, sql: str, parameters: Sequence[Value] = (), /) -> sqlite3.Cursor:  # type: ignore[override]
        cursor = super().execute(sql, parameters)
        if self.journal is not None and sql.lstrip().upper().startswith(_WRITES):
            self.journal.append((sql, tuple(parameters)))
        return cursor


def pack(statements: Sequence[Statement]) -> bytes:
    """The statements of one commit, as they travel."""
    return _ENCODER.encode(statements)


def replay(connection: sqlite3.Connection, batch: bytes) -> None:
    """Write what another file's commit wrote, whole or not at all.

    Raises:
        sqlite3.Error: these are no statements that change rows, or they do not fit this file.
    """
    try:
        statements = _DECODER.decode(batch)
    except (ValueError, RecursionError) as error:
        raise sqlite3.DataError(str(error)) from None
    # Others reach further than this file: ATTACH and VACUUM INTO make new ones, anywhere.
    if not all(sql.lstrip().upper().startswith(_WRITES) for sql, _ in statements):
        raise sqlite3.DataError("a statement changes no rows")
    connection.execute("BEGIN IMMEDIATE")
    try:
        for sql, parameters in statements:
            connection.execute(sql, parameters).fetchall()
        connection.execute("COMMIT")
    except (ValueError, OverflowError, sqlite3.Warning) as error:
        connection.execute("ROLLBACK")
        raise sqlite3.DataError(str(error)) from None
    except BaseException:
        connection.execute("ROLLBACK")
        raise
