"""Idempotency keys in the state file: kept over a restart, bounded, as a plain model has it."""

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.runtime.store import keyed
from haptera.runtime.store.keyed import Held, KeptAnswer, KeyLimits, RequestKey
from haptera.runtime.store.schema_sql import KEYED
from haptera.runtime.store.store import Store

DONE = KeptAnswer(200, {"etag": '"7.1"'}, b"{}")
KEY = RequestKey("user:bob", "k1")
FEW = KeyLimits(kept_s=60, each_max=3, all_max=5)


def opened(path):
    return Store.open(path, deliver=lambda _: None, wall_s=lambda: 1000.0)


def test_a_key_and_its_answer_outlive_the_process(tmp_path):
    other = RequestKey("user:bob", "k2")
    store = opened(tmp_path / "state.db")
    assert store.begin_keyed(KEY, b"one").result() is None
    assert store.begin_keyed(other, b"two").result() is None
    assert store.end_keyed(KEY, DONE).result() is None
    store.close()
    store = opened(tmp_path / "state.db")
    assert store.begin_keyed(KEY, b"one").result() == Held(b"one", DONE)
    assert store.begin_keyed(other, b"two").result() == Held(b"two", None)
    assert store.end_keyed(other, None).result() is None
    assert store.begin_keyed(other, b"new").result() is None
    store.close()


@pytest.mark.parametrize(("length", "body"), [(1000, b"x" * 1000), (20 << 20, b"x" * (20 << 20))])
def test_an_answer_is_kept_packed(length, body):
    connection = table()
    keyed.begin(connection, KEY, b"", 0)
    keyed.finish(connection, KEY, KeptAnswer(200, {}, body))
    assert len(keyed.begin(connection, KEY, b"", 0).answer.body) == length
    (size,) = connection.execute("SELECT length(answer) FROM keyed").fetchone()
    assert size <= keyed.ANSWER_BYTES_MAX


def table():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(KEYED)
    return connection


class Plain:
    """The same in a dictionary, oldest first."""

    def __init__(self):
        self.rows = {}

    def begin(self, key, sha256, now):
        fresh = {one: row for one, row in self.rows.items() if row[1] >= now - FEW.kept_s}
        self.rows = fresh
        if key in fresh:
            return Held(fresh[key][0], fresh[key][2])
        mine = [one for one in fresh if one.who == key.who]
        for one in mine[: max(0, len(mine) - FEW.each_max + 1)]:
            del fresh[one]
        for one in list(fresh)[: max(0, len(fresh) - FEW.all_max + 1)]:
            del fresh[one]
        fresh[key] = (sha256, now, None)
        return None

    def finish(self, key, answer):
        if key in self.rows:
            self.rows[key] = (*self.rows[key][:2], answer)

    def forget(self, key):
        self.rows.pop(key, None)


keys = st.builds(RequestKey, st.sampled_from(["a", "b", "c"]), st.sampled_from("123456"))
deeds = st.lists(
    st.tuples(
        st.sampled_from(["begin", "begin", "begin", "finish", "forget"]),
        keys,
        st.sampled_from([0, 0, 0, 1, 40]),
    ),
    min_size=8,
    max_size=40,
)


@given(deeds)
def test_keys_are_bounded_by_number_and_age_as_a_plain_model_has_it(several):
    connection, plain, now = table(), Plain(), 0
    for what, key, later in several:
        now += later
        answer = KeptAnswer(200, {}, f"{now}".encode())
        if what == "begin":
            digest = f"{key} {now}".encode()
            found = keyed.begin(connection, key, digest, now, FEW)
            assert found == plain.begin(key, digest, now)
        elif what == "finish":
            keyed.finish(connection, key, answer)
            plain.finish(key, answer)
        else:
            keyed.forget(connection, key)
            plain.forget(key)
        rows = connection.execute("SELECT who, key FROM keyed ORDER BY id").fetchall()
        assert [RequestKey(*row) for row in rows] == list(plain.rows)
        assert len(rows) <= FEW.all_max
