"""What a follower keeps beside the store, and whom it does not follow any more."""

import pytest

from haptera.daemon.tree.following import check_term, keep_beside
from haptera.daemon.tree.replicas import digest_of, read_beside
from haptera.model.errors import HapteraError

FILES = {"ca.key": b"key", "cluster.json": b"{}", "secrets/bmc": b"x", "term": b"2"}


def test_files_are_kept_as_told_and_those_that_are_gone_go(tmp_path):
    keep_beside(tmp_path, FILES)
    (tmp_path / "state.db").write_bytes(b"not of these")
    assert digest_of(read_beside(tmp_path)) == digest_of(FILES)
    assert (tmp_path / "ca.key").stat().st_mode & 0o077 == 0
    less = {name: content for name, content in FILES.items() if name != "secrets/bmc"}
    keep_beside(tmp_path, less)
    assert read_beside(tmp_path) == less
    assert (tmp_path / "state.db").exists()


@pytest.mark.parametrize(
    "name",
    [
        *("../outside", "secrets/../../outside", "secrets/..", "/etc/outside", "secrets/", ""),
        *("state.db", "client.json", "modules/strip.py", "secrets/a/b", "./ca.key"),
    ],
)
def test_no_file_is_kept_but_those_that_every_parent_has(name, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "state.db").write_bytes(b"ours")
    with pytest.raises(HapteraError, match="is not a file of a parent"):
        keep_beside(home, {name: b"x"})
    assert [*tmp_path.iterdir()] == [home]
    assert ([*home.iterdir()], (home / "state.db").read_bytes()) == ([home / "state.db"], b"ours")


def test_a_parent_that_was_superseded_is_not_followed(tmp_path):
    keep_beside(tmp_path, FILES)
    check_term(tmp_path, FILES)
    check_term(tmp_path, {**FILES, "term": b"3"})
    for old in ({**FILES, "term": b"1"}, {"ca.key": b"key"}):
        with pytest.raises(HapteraError, match="term 2 has begun"):
            check_term(tmp_path, old)
