"""`haptera backup` while a parent runs, and `restore`: all is there again, in a new epoch."""

import json
import sqlite3
import tarfile

import pytest

from tests.cli.rig import SITE, client_of, served, told, typed

pytestmark = [pytest.mark.net, pytest.mark.slow]


def test_what_was_backed_up_is_served_again_in_a_new_epoch(tmp_path):
    old, new, file = tmp_path / "old", tmp_path / "new", tmp_path / "state.tar.gz"
    for home in (old, new):
        home.mkdir()
    (old / "site.yaml").write_text(SITE)
    assert typed("secret", "set", "bmc", folder=old, given="hunter-2\n")[0] == 0

    def asked(home, *words):
        code, out, errors = typed(*words, "-o", "json", folder=home, client=client_of(home))
        assert (code, errors) == (0, "")
        return json.loads(out)

    with served(old, "--site", old / "site.yaml"):
        assert typed("set", "n1", "power=off", "--take", folder=old, client=client_of(old))[0] == 0
        before = asked(old, "get", "node")
        code, out, errors = typed("backup", file, folder=old)
        assert (code, errors) == (0, "")
        revision = max(one["revision"] for one in before)
        assert out.startswith(f"{file}: revision {revision}, ")
        assert file.stat().st_mode & 0o777 == 0o600
        # What comes later is not in it.
        assert typed("set", "n1", "power=on", folder=old, client=client_of(old))[0] == 0
    code, out, _ = typed("restore", "--dir", new, file, folder=tmp_path)
    assert (code, out.split(",")[0]) == (0, f"{new}: revision {revision}")
    with served(new):
        after = asked(new, "get", "node")
        assert [one["desired"] for one in after] == [one["desired"] for one in before]
        assert typed("secret", "list", folder=new)[1] == "SECRET  MODULES\nbmc     *\n"
        for name in ("ca.key", "ca.pem"):
            found = [next(home.rglob(name), None) for home in (old, new)]
            contents = {one and one.read_bytes() for one in found}
            assert len(contents) == 1
    epochs = {asked_epoch(home) for home in (old, new)}
    assert len(epochs) == 2


def asked_epoch(home):
    with sqlite3.connect(home / ".haptera" / "parent" / "state.db") as connection:
        return connection.execute("SELECT epoch FROM store").fetchone()[0]


def test_nothing_is_overwritten_and_nothing_unsound_restored(tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)
    file, other = tmp_path / "state.tar.gz", tmp_path / "other"
    other.mkdir()
    assert typed("backup", file, folder=tmp_path)[0] == 1
    with served(tmp_path, "--site", tmp_path / "site.yaml"):
        assert typed("backup", file, folder=tmp_path)[0] == 0
    again = typed("backup", file, folder=tmp_path)
    assert again == (1, "", told("exists already", file, "name another file"))
    code, _, errors = typed("restore", file, folder=tmp_path)
    assert (code, errors.splitlines()[0]) == (1, "error: there is a parent's state here already")

    whole = file.read_bytes()
    for number, content in enumerate([whole[: len(whole) // 2], b"no archive", tampered(file)]):
        bad = tmp_path / f"bad{number}.tar.gz"
        bad.write_bytes(content)
        wrong = told("is not a valid backup", bad, "take another backup")
        assert typed("restore", "--dir", other, bad, folder=tmp_path) == (1, "", wrong)
    missing = tmp_path / "missing.tar.gz"
    why = told("cannot be read: No such file or directory", missing, "see its path and rights")
    assert typed("restore", "--dir", other, missing, folder=tmp_path) == (1, "", why)
    assert list(other.iterdir()) == []


def tampered(file):
    """The backup with another secret put into it, that it does not tell of."""
    copy = file.with_name("tampered.tar.gz")
    with tarfile.open(file) as archive, tarfile.open(copy, "w:gz") as into:
        for entry in archive:
            into.addfile(entry, archive.extractfile(entry))
        into.addfile(tarfile.TarInfo("secrets/more"))
    return copy.read_bytes()
