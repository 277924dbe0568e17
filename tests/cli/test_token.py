"""`haptera token` as a person types it."""

import json

import pytest

from haptera.cli.main import OK, REFUSED
from tests.api.serving import serving
from tests.cli.test_commands import point_at, typed

pytestmark = pytest.mark.net


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    with serving() as one:
        point_at(one.url, "admin-token", monkeypatch, tmp_path)
        yield one


def test_a_token_is_made_listed_and_revoked(cluster, capsys):
    made = typed(capsys, "token", "make", "eve", "--scope", "write", "--within", "rack1n*")
    sentence = "t1: eve may write within rack1n*, until 1970-01-31 00:16 UTC\n"
    assert made == (OK, "hp1.t1.secret\n", sentence)
    listed = "ID  NAME  SCOPE  WITHIN   UNTIL\nt1  eve   write  rack1n*  1970-01-31 00:16 UTC\n"
    assert typed(capsys, "token", "list") == (OK, listed, "")
    assert typed(capsys, "token", "revoke", "t1") == (OK, "t1 of eve is revoked\n", "")
    assert typed(capsys, "token", "list") == (OK, "", "")


def test_a_client_file_lets_its_holder_in(cluster, capsys, monkeypatch, tmp_path):
    _, text, _ = typed(capsys, "token", "make", "eve", "--client-file")
    assert json.loads(text)["token"] == "hp1.t1.secret"
    (tmp_path / "eve.json").write_text(text)
    (tmp_path / "eve.json").chmod(0o600)
    monkeypatch.setenv("HAPTERA_CLIENT", str(tmp_path / "eve.json"))
    assert typed(capsys, "status") == (OK, "there are no entities\n", "")
    code, _, errors = typed(capsys, "token", "list")
    assert code == REFUSED
    assert errors.startswith("error: this needs a token of scope admin, eve's allows read\n")


def test_what_cannot_be_is_told(cluster, capsys):
    assert typed(capsys, "token", "revoke", "t9")[0] == REFUSED
    code, _, errors = typed(capsys, "token", "make", "eve", "--for", "long")
    assert (code, errors.splitlines()[0]) == (REFUSED, "error: 'long' is not a duration")
    for duration in ("9999d", "0s"):
        assert typed(capsys, "token", "make", "eve", "--for", duration) == (
            REFUSED,
            "",
            f"error: a token cannot be valid for {duration}\n  give it from 1s to 732d\n",
        )
