"""Any value in any column of `state.db`: it is read, or refused by its table in a sentence."""

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pytest

from haptera.core.engine import Engine
from haptera.core.state.limits import S
from haptera.core.state.side import Side
from haptera.daemon.parts import catalog_of, check_stored, codec_of
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.model.events import Ticked
from haptera.model.parts import Context
from haptera.queue.entry import Moment
from haptera.queue.queue import JobQueue
from haptera.runtime.store.keyed import RequestKey
from haptera.runtime.store.schema_sql import open_database
from haptera.runtime.store.store import Store
from haptera.selectors.selector import parse_selector

WALL_S: Final = 1_000.0
# A row of each table, as a parent writes it, in SQL.
ROWS: Final = MappingProxyType(
    {
        "store": "1, 7, 9, 9",
        "nodes": "'n1', '00000000-0000-0000-0000-000000000001', 1",
        "entities": """'node:n1', '{"cpus":"2"}', 'site', 1""",
        "desired": "'node:n1', 'power', 'on', 'site', 1.0, 1",
        "history": "1, 1, 1.0, 'node:n1', 'power', 'site', NULL, 'on', NULL, 1",
        "intents": "'i', 'node:n1', 'labnode', 'switch_on', 5, 'boot', 0, 1",
        "enrolments": "'t', zeroblob(32), 'n1', 'i', 2000.0, zeroblob(32), 1",
        "sessions": "'n1', zeroblob(32), '00000000-0000-0000-0000-000000000007', 1, 2, 3, 1,"
        " '127.0.0.1', 4270, zeroblob(8)",
        "tokens": "'k', 'eve', zeroblob(32), 'read', 2000.0, 1.0, 'n1'",
        "disruptions": "'i', 'node:n1', 5, 'boot', 990.0",
        "writes": "1, 1.0, 'user:eve', 'so'",
        "deeds": """1, 999.0, 'user:eve', 'retry', 'node:n1', '{"type":"release","node":"n1"}'""",
        "token_levels": "'t', 'window'",
        "session_levels": "'n1', 1, 'window'",
        "keyed": "1, 'eve', 'k', zeroblob(32), 999.0, NULL",
        "jobs": """1, '{"id":1,"array":1,"index":0,"name":"a","owner":"user:eve","priority":0,"""
        """"submitted_s":1.0}'""",
        "array_specs": """1, '{"command":["true"],"size":{"cpus":1,"memory_mb":64}}'""",
        "duties": """'n1', '{"mode":"drain","reason":"so","who":"user:eve"}'""",
        "queue": "1, 1, 1",
        "links": "1, 1, NULL, zeroblob(32)",
        "anchor": "1, 0, zeroblob(32), 0, 0",
    }
)
NO_UTF8: Final = object()
BAD: Final = (
    *(None, -1, 0, 2**63 - 1, -(2**63), 1.5, float("inf"), b"", b"\xff\0", b"\x80" * 40, NO_UTF8),
    *("", "a\0b", "\x1b[1m\u202e", "none", "node:n1@n2", "no:such@n1", "freeze:x", "9" * 5_000),
    *("{}", "[]", "null", "{", '{"a":1}', "[" * 100_000, '"\\ud800"', "a" * 2**20),
)
# Of the file, by its name.
SAID: Final = (
    r"{name}, table [\w ]+.*(backup|sqlite3)|.*{name}: (is damaged|cannot be read)"
    r"|state\.db, (table desired.*(backup|sqlite3)|no:such@n1 among them)"
    r"|the desired state of that time is no longer known"
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("crafted") / "whole.db"
    with closing(open_database(path)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        for table, row in ROWS.items():
            connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({row})")
    return path


def columns(path: Path) -> Iterator[tuple[str, str]]:
    """Each column that the schema has, with its table."""
    with closing(sqlite3.connect(path)) as connection:
        yield from connection.execute(
            "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c"
            " WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'"
        )


def crafted(path: Path, table: str, column: str, value: Any) -> bool:
    """True if the file can have this value there."""
    given = ("CAST(x'ff41' AS TEXT)", ()) if value is NO_UTF8 else ("?", (value,))
    with closing(sqlite3.connect(path)) as connection, suppress(sqlite3.IntegrityError):
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(f"UPDATE {table} SET {column} = {given[0]}", given[1])
        connection.commit()
        return True
    return False


def begun(path: Path) -> None:
    """All that a parent reads of its file, at its start and when somebody asks."""
    store = Store.open(path, deliver=lambda _: None, wall_s=lambda: WALL_S)
    try:
        stored = store.load()
        check_stored(stored)
        catalog = catalog_of(["labnode", "service"], ())
        side = Side(Context.PARENT, None, 1, "boot", S, lambda: 0.5)
        engine = Engine(side, catalog, stored, codec_of(catalog).schema, 10 * S)
        engine.requests.take_up(store.requests(100.0), 10 * S)
        engine.handle([Ticked()], 11 * S)
        store.sessions()
        store.tokens()
        JobQueue(store.load_queue(), Moment(10 * S, WALL_S))
        store.deeds(None, 10)
        store.deeds(parse_selector("n1"), 10)
        store.past(_everything, before=None, count_max=10)
        store.changed_since(_everything, 0.0, 10)
        store.written(1)
        # Refused or not: a request is answered, and its fault is its own.
        store.begin_keyed(RequestKey("eve", "k"), b"").result()
        store.invite("n1").result()
    finally:
        store.close()


def refusal(path: Path) -> str | None:
    """With what a parent of this file refuses to begin, or to answer."""
    try:
        begun(path)
    except HapteraError as error:
        return str(error)
    return None


def _everything(_: EntityId) -> bool:
    return True


def test_each_table_has_a_row_and_a_parent_begins_with_these(whole: Path, tmp_path: Path) -> None:
    assert {table for table, _ in columns(whole)} == ROWS.keys()
    begun(Path(shutil.copy(whole, tmp_path / "state.db")))


@pytest.mark.slow
@pytest.mark.parametrize("table", ROWS)
def test_whatever_a_column_has_is_read_or_refused_by_its_table(
    table: str, whole: Path, tmp_path: Path
) -> None:
    refused = 0
    for column in (column for one, column in columns(whole) if one == table):
        for number, value in enumerate(BAD):
            path = Path(shutil.copy(whole, tmp_path / f"{column}{number}.db"))
            if not crafted(path, table, column, value):
                continue
            said = refusal(path)
            refused += said is not None
            if said is not None:
                says = SAID.replace("{name}", re.escape(path.name))
                assert re.match(says, said), (column, value, said)
                assert said.isprintable(), (column, value, said)
    assert refused > 0 or table in UNREAD


# Of these a row is read only by who asks for it, by its key, or by `haptera audit verify`.
UNREAD: Final = {"enrolments", "token_levels", "session_levels", "keyed", "links", "anchor"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            "UPDATE entities SET attributes = '{'",
            "state.db, table entities, row 'node:n1': cannot be read: Input data was truncated",
        ),
        (
            "UPDATE sessions SET parent_index = 'a'",
            "state.db, table sessions, row 'n1': cannot be read: Expected `int`, got `str`",
        ),
        (
            "UPDATE tokens SET scope = 'all'",
            "state.db, table tokens, row 'k': cannot be read: Invalid enum value 'all'",
        ),
        (
            "UPDATE jobs SET id = 2",
            "state.db, table jobs, row 2: cannot be read: it says that it is job 1",
        ),
        ("DELETE FROM queue", "state.db, table queue: cannot be read: its row is missing"),
        (
            "UPDATE desired SET value = 'none'",
            "state.db, table desired: 1 stored values cannot be desired, power of node:n1",
        ),
        (
            "UPDATE writes SET who = CAST(x'ff' AS TEXT)",
            "state.db, table writes or deeds: cannot be read: Could not decode to UTF-8",
        ),
    ],
)
def test_who_starts_a_parent_hears_of_the_row_and_what_to_do(
    change: str, said: str, whole: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(whole, tmp_path / "state.db"))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(change)
        connection.commit()
    told = refusal(path)
    assert told is not None
    assert (said in told, "backup" in told) == (True, True), told
