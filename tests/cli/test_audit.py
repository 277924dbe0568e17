"""`haptera audit verify`: what it prints of a sound record, and of one that was altered."""

import contextlib
import sqlite3

from haptera.cli.output.standing import print_subtrees
from haptera.model.changes import Author, Declare, SetDesired
from haptera.model.entity import node_id
from tests.cli.rig import told, typed
from tests.runtime.test_store import opened

N01 = node_id("n01")


def test_an_altered_record_is_named_and_fails(tmp_path):
    path = tmp_path / ".haptera" / "parent" / "state.db"
    with opened(path) as one:
        one.write(Declare(N01, {}, "site"), author=Author("site"))
        one.write(SetDesired(N01, "power", "on", "user:eve"), author=Author("user:eve"))
    code, sound, errors = typed("audit", "verify", folder=tmp_path)
    head = sound.split()[-1]
    assert (code, sound, errors) == (0, f"2 links; the last is 2: {head}\n", "")
    assert typed("audit", "verify", "--noted", head, folder=tmp_path) == (0, sound, "")

    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE writes SET who = 'user:bob' WHERE revision = 2")
    finding = "the write of revision 2 was altered, or link 2 or the one before\n"
    assert typed("audit", "verify", "--dir", tmp_path, folder=tmp_path) == (1, finding + sound, "")


def test_without_a_state_file_it_says_so(tmp_path):
    code, out, errors = typed("audit", "verify", folder=tmp_path)
    where = tmp_path / ".haptera" / "parent"
    assert (code, out, errors) == (
        1,
        "",
        told("there is no parent's state here", where, "name --dir"),
    )


def test_what_was_noted_must_be_a_hash(tmp_path):
    for noted in ("", "3f0c9a", "z" * 64):
        code, out, errors = typed("audit", "verify", "--noted", noted, folder=tmp_path)
        assert (code, out) == (2, "")
        assert f"{noted!r} is not a hash of 64 digits" in errors


def test_subtrees_are_told_by_parent_kind_and_condition(capsys):
    counts = {"t1": {"node": {"converged": 16}, "module": {"converged": 3}}}
    print_subtrees({**counts, "t2": {"node": {"stuck": 1}}}, "table")
    print_subtrees({}, "table")
    assert capsys.readouterr().out == (
        "\nBELOW  WHAT  CONDITION  COUNT\nt1     node  converged  16\nt2     node  stuck      1\n"
    )
