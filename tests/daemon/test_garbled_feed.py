"""A parent that has turned, or who answers in its place, tells those that follow it anything."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from haptera.client import Access
from haptera.daemon.tree.following import Following, keep_beside
from haptera.model.errors import HapteraError
from haptera.rest.schemas import ReplicaView
from haptera.runtime.store.feed import Follower
from haptera.runtime.store.journaled import pack
from haptera.runtime.store.replica import Replica
from haptera.runtime.store.schema_sql import open_database

LOG = 7
CODE = (
    "CREATE TRIGGER t AFTER UPDATE ON store BEGIN DELETE FROM store; END",
    "CREATE VIEW v AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x FROM n",
    "CREATE VIRTUAL TABLE v USING fts5(x)",
)
OURS = {"ca.key": b"key", "cluster.json": b'{"name":"small","modules":[]}', "term": b"2"}


def store(path: Path) -> bytes:
    """The file of a parent, whole."""
    connection = open_database(path)
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()
    return path.read_bytes()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (place := tmp_path / "home").mkdir()
    keep_beside(place, OURS)
    return place


@pytest.fixture
def replica(home: Path, tmp_path: Path):
    """A copy that is at place 4 of its log."""
    one = Replica.open(home / "state.db")
    one.take_whole(store(tmp_path / "theirs.db"), LOG, 4)
    yield one
    one.close()


@pytest.fixture
def following(home: Path, replica: Replica):
    one = Following(Follower.STANDBY, Access("https://127.0.0.1:1", token="x"), replica, home)
    yield one
    one.close()


def told(*batches: bytes, log: int = LOG, place: int = 5, **more) -> ReplicaView:
    return ReplicaView(log, place, place, [*batches], "", **more)


def revision(replica: Replica) -> int:
    assert replica.connection is not None
    return replica.connection.execute("SELECT revision FROM store").fetchone()[0]


NEXT = pack([("UPDATE store SET revision = revision + 1", ())])


def test_what_comes_next_is_kept_and_a_whole_file_at_any_time(
    following: Following, replica: Replica, tmp_path: Path
):
    before = revision(replica)
    following.keep(told(NEXT))
    assert (revision(replica), replica.place) == (before + 1, 5)
    following.keep(told(log=1, place=9, whole=store(tmp_path / "later.db")))
    assert (revision(replica), replica.log, replica.place) == (before, 1, 9)


@pytest.mark.parametrize(
    "answer",
    [
        told(NEXT, log=LOG + 1),  # of another process, or another cluster's
        told(NEXT, place=4),  # of before: it is here already
        told(NEXT, NEXT, place=5),
        told(NEXT, place=6),  # one is missing
        told(place=9),
        told(NEXT, NEXT, place=4),
    ],
)
def test_what_is_not_next_is_not_kept_and_all_is_taken_anew(following, replica, answer):
    before = revision(replica)
    with pytest.raises(HapteraError, match="does not follow on what is here"):
        following.keep(answer)
    assert revision(replica) == before
    assert (replica.log, replica.place) == (0, 0)


@pytest.mark.parametrize(
    "batch",
    [
        b"",
        b"\xff" * 40,
        msgspec.msgpack.encode([("UPDATE store SET revision = ?", (1 << 63,))]),
        msgspec.msgpack.encode([("UPDATE store SET revision = ?", ({"a": 1},))]),
        msgspec.msgpack.encode([("UPDATE store SET revision = ?\0", (1,))]),
        pack([("UPDATE nothing SET x = 1", ())]),
        pack([("", ())]),
        pack([("COMMIT", ())]),
        pack([("PRAGMA journal_mode = OFF", ())]),
        pack([("DROP TABLE store", ())]),
        pack([("CREATE TRIGGER t AFTER UPDATE ON store BEGIN DELETE FROM store; END", ())]),
        pack([("CREATE VIEW v AS SELECT 1", ())]),
        pack([("UPDATE store SET revision = 99; DROP TABLE store", ())]),
        pack([("UPDATE store SET revision = 99", ()), ("UPDATE nothing SET x = 1", ())]),
    ],
)
def test_what_no_parent_writes_is_not_kept_and_ends_nothing(following, replica, batch):
    before = revision(replica)
    with pytest.raises(HapteraError, match="cannot be kept"):
        following.keep(told(batch))
    assert revision(replica) == before


@pytest.mark.parametrize("first", [[], [("COMMIT", ())]])
@pytest.mark.parametrize("statement", ["ATTACH DATABASE '{}' AS other", "VACUUM INTO '{}'"])
def test_no_statement_of_a_parent_makes_another_file(following, tmp_path, first, statement):
    place = tmp_path / "planted"
    batch = pack([*first, (statement.format(place), ()), ("CREATE TABLE other.x (y)", ())])
    with pytest.raises(HapteraError, match="cannot be kept"):
        following.keep(told(batch))
    assert not place.exists()


@pytest.mark.parametrize("whole", [b"", b"no file of SQLite" * 999, b"SQLite format 3\0" * 999])
def test_a_copy_that_is_none_does_not_take_the_place_of_the_last_one(
    following, replica, home, whole
):
    before = revision(replica), (home / "state.db").stat().st_ino
    with pytest.raises(HapteraError):
        following.keep(told(whole=whole))
    assert (revision(replica), (home / "state.db").stat().st_ino) == before


def test_the_parent_of_another_cluster_is_not_followed(following, replica, home):
    files = {**OURS, "cluster.json": b'{"name":"other","modules":[]}', "ca.key": b"theirs"}
    before = revision(replica)
    with pytest.raises(HapteraError, match="another cluster"):
        following.keep(told(NEXT, files=files))
    assert (home / "ca.key").read_bytes() == b"key"
    assert revision(replica) == before


@pytest.mark.parametrize(
    "garbled",
    [
        {"term": b"9" * 5_000},
        {"cluster.json": b'{"name":"small","modules":[],"more":' + b"[" * 100_000},
        {"cluster.json": b"\xff"},
        {"secrets/" + "a" * 300: b""},
        {"secrets/a\0b": b""},
        {"secrets/\ud800": b""},
        {"secrets/..": b""},
        {"secrets/a/b": b""},
        {"state.db": b""},
    ],
    ids=str,
)
def test_files_that_no_parent_has_are_not_kept_and_end_nothing(following, replica, home, garbled):
    before = revision(replica), (home / "ca.key").read_bytes()
    with pytest.raises(HapteraError):
        following.keep(told(NEXT, files={**OURS, **garbled}))
    assert (revision(replica), (home / "ca.key").read_bytes()) == before


def test_a_copy_with_code_in_it_is_none(following, replica, home, tmp_path):
    for number, code in enumerate(CODE):
        store(place := tmp_path / f"{number}.db")
        with closing(sqlite3.connect(place)) as theirs:
            theirs.execute(code)
            theirs.commit()
        with pytest.raises(HapteraError, match="is damaged, or no database"):
            following.keep(told(whole=place.read_bytes()))
