"""A store of each released version is brought to this one; its migrations are frozen."""

import contextlib
import hashlib
import sqlite3
from pathlib import Path
from uuid import UUID

import pytest

from haptera.runtime.store.journaled import pack, replay
from haptera.runtime.store.migrations_sql import MIGRATIONS
from haptera.runtime.store.schema_sql import VERSION, open_database
from haptera.runtime.store.sessions import SavedSession
from haptera.runtime.store.sessions_sql import load_sessions, save_session
from haptera.wire.seal import Agreement

FIRST = Path(__file__).with_name("schemas") / "v1.sql"
# Of the text that brings each released version to the next. Do not change one: add the next.
FROZEN = {
    1: "28e97964e2f611ed0d501a1eeab62cd576ddb837390e3433101ed27dfe807001",
    2: "c49d70f6756e98519402da6c03cc4d61ac487bd15a81fa58c4165e0e9cb891f8",
    3: "8910fc50c6b122b4bedda801d3456bf6cb72ed019b43277470a51df6dceedc10",
    4: "7b4114c49a195954686e93338cc8b0e7305e9937e23794aa3dcfc70491e4e8dd",
    5: "b4f7e6c464199bf9d67926468b7ca8dc452df0c42a47359bfff8449e0091c15b",
    6: "06b5e70fcc8b239d5f28e296439619e81d234330efbe3ba38d8dde7a9874bec4",
    7: "34c8a0631e884e452b3195dc76dbb0cfb8c2a6b1d48ae666a19f67c51614d922",
    8: "86e682c2f3650cec9c76ea3e7450fe1530b58ed620ff9e9f2b90b23c92539837",
    9: "60589f080e9f74e3b7ffee1f7a46e319b0e2926ec59cc9b129a3287e06759dd6",
    10: "5b750d996d402c5076e959e96a13a489d9f748372aa0e78d794579dda4b82a42",
}
# How version 9 writes what this version writes in tables of its own besides.
TOKEN_BEFORE = "INSERT INTO enrolments VALUES (?, ?, ?, ?, ?, NULL, NULL)"
SESSION_BEFORE = (
    "INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (peer)"
    " DO UPDATE SET secret = ?2, cluster = ?3, incarnation = ?4, parent_index = ?5,"
    " child_index = ?6, suite = ?7, host = ?8, port = ?9, peer_boot = ?10 WHERE incarnation <= ?4"
)


def made(path: Path, version: int) -> Path:
    """A state file of this version, as the first one was, brought as far."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(FIRST.read_text(encoding="utf-8"))
        for step in range(1, version):
            connection.executescript(MIGRATIONS[step])
        connection.execute(f"PRAGMA user_version = {version}")
    return path


def columns(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """All that each table and index has."""
    found = "SELECT name, type FROM sqlite_master WHERE name NOT LIKE 'sqlite%'"
    return {
        name: connection.execute(f"PRAGMA {kind}_info({name})").fetchall()
        for name, kind in sorted(connection.execute(found).fetchall())
    }


def test_the_migrations_of_released_versions_are_as_they_were() -> None:
    digests = {step: hashlib.sha256(text.encode()).hexdigest() for step, text in MIGRATIONS.items()}
    assert digests == FROZEN
    assert [*MIGRATIONS] == [*range(1, VERSION)]


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_a_store_of_each_version_becomes_one_of_this(tmp_path: Path, version: int) -> None:
    with contextlib.closing(open_database(tmp_path / "fresh.db")) as fresh:
        wanted = columns(fresh)
    with contextlib.closing(open_database(made(tmp_path / "state.db", version))) as migrated:
        assert columns(migrated) == wanted
        assert migrated.execute("PRAGMA user_version").fetchone() == (VERSION,)
        assert migrated.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_what_the_first_version_held_is_there_in_this_one(tmp_path: Path) -> None:
    with contextlib.closing(open_database(made(tmp_path / "state.db", 1))) as migrated:
        for table, row in {
            "store": (1, 77, 9, 8),
            "desired": ("node:n01", "power", "on", "user:eve", 5.0, 8),
            "history": (1, 8, 5.0, "node:n01", "power", "user:eve", None, "on", None, None),
            "intents": ("i1", "node:n01", "labnode", "switch_on", 5, "boot", 1, 0),
            "tokens": ("t1", "eve", b"\0", "write", 9e9, 0.0, None),
        }.items():
            assert migrated.execute(f"SELECT * FROM {table}").fetchall() == [row]


def test_what_a_primary_of_the_version_before_writes_is_written_here_too(tmp_path: Path) -> None:
    """A follower that is upgraded first has a copy of this version, and gets the older's rows."""
    secret, agreement = b"s" * 32, Agreement(b"s" * 32, UUID(int=1), UUID(int=7), 3, 11, 12)
    known = SavedSession("n07", agreement, ("127.0.0.7", 4271), level="out-of-band")
    session = ["n07", secret, str(UUID(int=1)), 3, 11, 12, 1, "127.0.0.7", 4271, None]
    later = [*session[:3], 4, *session[4:]]
    with contextlib.closing(open_database(made(tmp_path / "state.db", 9))) as copy:
        copy.execute("INSERT INTO nodes VALUES ('n07', ?, 4)", (str(UUID(int=7)),))
        save_session(copy, known)
        for written, level in ((session, "out-of-band"), (later, None)):
            statements = [
                (TOKEN_BEFORE, (f"t{written[3]}", b"", "n07", "i1", 9e9)),
                (SESSION_BEFORE, tuple(written)),
            ]
            replay(copy, pack(statements))
            (held,) = load_sessions(copy)
            assert (held.agreement.incarnation, held.level) == (written[3], level)
