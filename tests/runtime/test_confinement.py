"""A confined process reaches nothing of what is the parent's, by no way that is tried here."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from haptera.runtime.processes.confinement import (
    Confinement,
    confine_to,
    landlock_version,
    uid_of,
    unreachable,
)

ROOT = Path(__file__).resolve().parents[2]
SIGNALS_FROM = 6

pytestmark = pytest.mark.net


@pytest.fixture(name="passable")
def _passable():
    """A folder that others reach, unlike those of pytest."""
    with TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o711)
        yield Path(name)


def home_of(tmp_path):
    """A parent's folder with what nobody else should have, and a file beside it."""
    home = tmp_path / "cluster" / ".haptera" / "parent"
    home.mkdir(parents=True)
    for name in ("ca.key", "state.db"):
        (home / name).write_text("hunter2")
    (tmp_path / "cluster" / "site.yaml").write_text("cluster: c")
    return home


def spied(confinement, *paths):
    told = msgspec.json.encode(confinement).decode()
    command = [sys.executable, "-m", "tests.runtime.spy", told, *map(str, paths)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
def test_as_the_same_user_it_reaches_nothing_that_is_hidden(tmp_path):
    home = home_of(tmp_path)
    folder = home.parent / "modules" / "spy"
    token, site = home.parent / "client.json", tmp_path / "cluster" / "site.yaml"
    token.write_text("hunter2")
    secret = (home / "ca.key", home / "state.db", token)
    told = spied(Confinement((str(home), str(token)), str(folder)), *secret, site)

    denied = dict.fromkeys(("ca.key", "state.db", "client.json"), "PermissionError")
    assert told == {
        "own": "done",
        "kill": "PermissionError" if landlock_version() >= SIGNALS_FROM else "done",
        "trace": "PermissionError",
        "privileges": "1",
        "uid": os.getuid(),
        "read": denied | {"site.yaml": "done"},
        # In a folder on the way to what is hidden nothing is removed, nor made.
        "replaced": denied | {"site.yaml": "PermissionError"},
        "listed": "PermissionError",
        "made": "PermissionError",
    }
    assert [one.read_text() for one in secret] == ["hunter2"] * 3


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
def test_what_is_shared_is_reached_and_nothing_else_that_is_hidden(tmp_path):
    home = home_of(tmp_path)
    (home / "minos").mkdir()
    (home / "minos" / "kernel").write_text("bzImage")
    confinement = Confinement(
        (str(home),), str(home.parent / "modules" / "spy"), shared=(str(home / "minos"),)
    )
    told = spied(confinement, home / "minos" / "kernel", home / "ca.key", home / "state.db")
    denied = dict.fromkeys(("ca.key", "state.db"), "PermissionError")
    assert (told["read"], told["own"]) == ({"kernel": "done"} | denied, "done")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_as_a_user_of_its_own_it_reaches_nothing_of_anybodys(passable):
    home = home_of(passable)
    folder, other = passable / "modules" / "spy", passable / "private"
    folder.parent.mkdir(mode=0o711)
    other.write_text("of another user")
    other.chmod(0o600)
    uid = uid_of("spy")
    told = spied(Confinement((), str(folder), uid=uid), home / "ca.key", other)

    assert (told["uid"], told["own"], told["kill"]) == (uid, "done", "PermissionError")
    assert (told["trace"], told["privileges"]) == ("PermissionError", "1")
    assert told["read"]["private"] == "PermissionError"
    assert set(told["replaced"].values()) == {"PermissionError"}
    assert (folder.stat().st_uid, (folder / "mine").stat().st_uid) == (uid, uid)


def test_two_modules_are_two_users():
    assert uid_of("spy") == uid_of("spy") != uid_of("labnode")


def test_what_others_do_not_reach_is_named(passable):
    inner = passable / "a" / "b"
    inner.mkdir(parents=True)
    file = inner / "code.py"
    file.touch(0o644)
    for one in (passable / "a", inner):
        one.chmod(0o711)
    assert unreachable(file) is None
    (passable / "a").chmod(0o700)
    assert unreachable(file) == passable / "a"
    file.chmod(0o600)
    assert unreachable(file) == file


def test_one_that_cannot_be_confined_does_not_go_on(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="Not a directory"):
        confine_to(Confinement((), str(tmp_path / "file" / "folder")))
