"""Whoever alters, removes or adds a row of the record of writes is found, and where."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from haptera.model.changes import Author, Declare, SetDesired, Undeclare
from haptera.model.entity import node_id
from haptera.model.events import Asked
from haptera.runtime.store.audit_chain import verify
from haptera.runtime.store.changes_sql import HISTORY_KEPT_S
from haptera.runtime.store.journaled import replay
from tests.runtime.test_migrations import made
from tests.runtime.test_store import Opened, opened

EVE, SITE = Author("user:eve", "maintenance"), Author("site")
N01 = node_id("n01")
# Of a chain that version 8 made: it had no column for requests.
HEAD_OF_8 = "7ea14108c8286618298ed3340dcd46cd4f510c3a34e0028b851cbdd22ad027b6"


def write_some(one: Opened) -> None:
    """Two writes with several changes each, a deed, one without an author, and a last one."""
    one.write(
        Declare(N01, {"rack": "1"}, "site"), SetDesired(N01, "power", "on", "site"), author=SITE
    )
    one.write(SetDesired(N01, "power", "off", "user:eve"), Undeclare(N01), author=EVE)
    one.store.note("user:eve", "retry node:n01", N01, Asked(N01))
    one.write(Declare(N01, {}, "site"))
    one.write(SetDesired(N01, "power", "on", "site"), author=SITE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with opened(tmp_path / "state.db") as one:
        write_some(one)
    return tmp_path / "state.db"


def edit(path: Path, sql: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        assert connection.execute(sql).rowcount == 1, sql


def test_what_nobody_touched_fits_and_the_last_hash_is_found_again(path: Path) -> None:
    found = verify(path)
    assert (found.links, found.forgotten, found.head[0], found.findings) == (5, 0, 5, ())
    with opened(path) as one:
        one.write(SetDesired(N01, "power", "off", "site"), author=SITE)
    later = verify(path, noted=found.head[1])
    assert (later.links, later.findings) == (6, ())


@pytest.mark.parametrize(
    ("sql", "finding"),
    [
        ("UPDATE writes SET who = 'user:bob' WHERE revision = 4", "the write of revision 4 was"),
        ("UPDATE writes SET why = NULL WHERE revision = 4", "the write of revision 4 was altered"),
        ("UPDATE history SET after = 'on' WHERE after = 'off'", "the write of revision 4 was"),
        ("UPDATE history SET at_s = 7 WHERE revision = 1", "the write of revision 2 was altered"),
        ("DELETE FROM history WHERE revision = 2", "the write of revision 2 was altered"),
        ("DELETE FROM history WHERE revision = 6", "the write of revision 6 was altered"),
        ("DELETE FROM history WHERE revision = 5", "the write of revision 5 is missing, of link 4"),
        ("UPDATE deeds SET what = 'nothing'", "deed 1 was altered"),
        ("DELETE FROM deeds", "deed 1 is missing, of link 3"),
        ("UPDATE deeds SET entity = NULL", "deed 1 was altered"),
        ("UPDATE deeds SET request = NULL", "deed 1 was altered"),
        ("UPDATE deeds SET request = replace(request, 'n01', 'n02')", "deed 1 was altered"),
        ("INSERT INTO deeds VALUES (9, 1.0, 'user:bob', 'x', NULL, NULL)", "deed 9 is in no link"),
        ("INSERT INTO writes VALUES (9, 1.0, 'site', NULL)", "the write of revision 9 is in no"),
        ("DELETE FROM links WHERE id = 2", "links 2 to 2 are missing"),
        ("DELETE FROM links WHERE id = 1", "links 1 to 1 are missing"),
        ("DELETE FROM links WHERE id = 5", "links 5 to 5 are missing"),
        ("UPDATE links SET sha256 = zeroblob(32) WHERE id = 5", "the write of revision 6 was"),
        ("UPDATE anchor SET sha256 = x'00'", "the write of revision 2 was altered, or link 1"),
    ],
)
def test_what_was_altered_is_named(path: Path, sql: str, finding: str) -> None:
    edit(path, sql)
    assert any(one.startswith(finding) for one in verify(path).findings), verify(path).findings


def test_a_chain_that_was_made_anew_is_found_by_a_hash_that_was_noted(tmp_path: Path) -> None:
    with opened(tmp_path / "state.db") as one:
        write_some(one)
    noted = verify(tmp_path / "state.db").head[1]
    with opened(tmp_path / "other.db") as one:
        one.write(Declare(N01, {"rack": "1"}, "site"), author=SITE)
    found = verify(tmp_path / "other.db", noted)
    assert [text.startswith(f"no link has the hash {noted}") for text in found.findings] == [True]


def test_what_is_forgotten_for_its_age_is_no_finding(path: Path) -> None:
    with opened(path) as one:
        one.wall_s += HISTORY_KEPT_S + 1
        one.write(SetDesired(N01, "power", "off", "site"), author=SITE)
        one.write(SetDesired(N01, "power", "on", "site"), author=SITE)
    found = verify(path)
    assert (found.links + found.forgotten, found.findings) == (7, ())
    assert found.forgotten >= 5
    edit(path, "UPDATE history SET after = 'hung' WHERE revision = 8")
    assert len(verify(path).findings) == 1


@pytest.mark.parametrize("version", range(1, 7))
def test_the_chain_of_an_older_file_begins_with_this_version(tmp_path: Path, version: int) -> None:
    path = made(tmp_path / "state.db", version)
    with opened(path) as one:
        write_some(one)
    found = verify(path)
    assert (found.links, found.findings) == (5, ())


def test_who_follows_has_the_same_chain(tmp_path: Path) -> None:
    path, copy = tmp_path / "state.db", tmp_path / "copy.db"
    with opened(path):
        pass
    copy.write_bytes(path.read_bytes())
    batches: list[bytes] = []
    with opened(path, shipped=batches.append) as one:
        write_some(one)
    with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        for batch in batches:
            replay(connection, batch)
    assert verify(copy) == verify(path)
    assert (verify(copy).links, verify(copy).findings) == (5, ())


def test_what_older_versions_chained_still_fits(tmp_path: Path) -> None:
    with opened(tmp_path / "state.db") as one:
        one.store.note("user:eve", "release the brake")
        one.store.note("user:eve", "retry node:n01", N01)
    assert verify(tmp_path / "state.db").head[1] == HEAD_OF_8
