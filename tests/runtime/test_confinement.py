"""A confined process reaches nothing of what is the parent's, by no way that is tried here."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from haptera.model.errors import DeclarationError
from haptera.model.parts import Context, Manifest, Privilege
from haptera.runtime.processes.confinement.confinement import (
    Confinement,
    confine_to,
    landlock_version,
    uid_of,
    unreachable,
)
from tests.runtime.spy import DEVICES

ROOT = Path(__file__).resolve().parents[2]
SIGNALS_FROM = 6
POWERS = ("elsewhere", "device", "disk", "port", "raw", "user", "mount", "undone")

pytestmark = pytest.mark.net


@pytest.fixture(name="passable")
def _passable():
    """A folder that others reach, unlike those of pytest."""
    with TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture(name="unshared")
def _unshared():
    """A folder that is not below one that everybody writes."""
    places = (ROOT, Path.home(), Path("/var/lib"))
    fit = (one for one in places if os.access(one, os.W_OK) and not _is_written_by_all(one))
    if (place := next(fit, None)) is None:
        pytest.skip(f"all of these are written by everybody, or not by us: {places}")
    with TemporaryDirectory(dir=place) as name:
        yield Path(name)


def _is_written_by_all(path):
    return any(path.resolve().is_relative_to(one) for one in ("/tmp", "/var/tmp", "/dev/shm"))


def home_of(tmp_path):
    """A parent's folder with what nobody else should have, and a file beside it."""
    home = tmp_path / "cluster" / ".haptera" / "parent"
    home.mkdir(parents=True)
    for name in ("ca.key", "state.db"):
        (home / name).write_text("hunter2")
    (tmp_path / "cluster" / "site.yaml").write_text("cluster: c")
    return home


def can_have_namespaces():
    """Whether a process may mount here, and be in a user namespace that it makes."""
    words = ["unshare", "--mount", "unshare", "--user", "--mount", "true"]
    is_root = os.getuid() == 0
    return is_root and subprocess.run(words, capture_output=True, check=False).returncode == 0


def spied(confinement, *paths, within=()):
    if not within and not any(map(os.path.exists, DEVICES)):
        pytest.skip(f"none of these devices is here, to be tried: {', '.join(DEVICES)}")
    told = msgspec.json.encode(confinement).decode()
    # What it mounts must not stay: a root bound below a folder is removed with that folder.
    apart = ["unshare", "--mount", "--propagation", "private"] if can_have_namespaces() else []
    command = [*apart, *within, sys.executable, "-m", "tests.runtime.spy", told, *map(str, paths)]
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
        "power": dict.fromkeys(POWERS, "PermissionError"),
        "capabilities": [],
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


DEVICE_GROUP = 54_321
DEVICE = "/dev/haptera-spy"
# What a daemon with this folder tells of a module that needs devices.
TELLS = """
import sys
from pathlib import Path
from haptera.daemon.confining import Grounds, devices_told
from haptera.model.parts import Context, Manifest, Privilege
home = Path(sys.argv[1]) / "home"
spy = Manifest("spy", "1", Context.SELF, (), (), needs=(Privilege.DEVICES,))
class Readable(Grounds):
    obstacle = None
grounds = Readable(home, home.with_name("modules"), (str(home),), (), has_users=True, host=True)
others = {"other": Manifest("other", "1", Context.SELF, (), ())}
others["above"] = Manifest("above", "1", Context.PARENT, (), (), needs=(Privilege.DEVICES,))
print(*devices_told(grounds, {"spy": spy, **others}), end="")
"""


def own_dev(mode, *, number="1 3", group=0, groups=(0,)):
    """The words that run a command with a /dev of its own, and a device there; with these groups.

    By default it has the number of /dev/null, which can be opened on any machine.
    """
    made = ["mount -t tmpfs -o mode=755 none /dev", "mkdir /dev/shm"]
    made += ["mknod -m 666 /dev/null c 1 3", "mknod -m 666 /dev/urandom c 1 9"]
    made += [f"mknod -m {mode:o} {DEVICE} c {number}", f"chown 0:{group} {DEVICE}"]
    with_groups = ["setpriv", "--groups", ",".join(map(str, groups))]
    return ["sh", "-c", f'{" && ".join(made)} && exec "$@"', "sh", *with_groups]


NEEDS_NAMESPACES = pytest.mark.skipif(
    not can_have_namespaces(), reason="only root that may mount has a /dev of its own here"
)


@NEEDS_NAMESPACES
@pytest.mark.parametrize(
    ("mode", "group", "groups", "opened"),
    [
        (0o600, 0, (0,), "PermissionError"),
        (0o600, 0, (0, DEVICE_GROUP), "PermissionError"),
        (0o660, DEVICE_GROUP, (0,), "PermissionError"),
        (0o660, DEVICE_GROUP, (0, DEVICE_GROUP), "done"),
        (0o666, 0, (0,), "done"),
    ],
)
def test_a_user_of_its_own_opens_devices_of_the_groups_that_its_daemon_was_given(
    passable, mode, group, groups, opened
):
    (passable / "modules").mkdir(mode=0o711)
    folder = str(passable / "modules" / "spy")
    needs = Confinement((), folder, uid=uid_of("spy"), needs=(Privilege.DEVICES,))
    within = own_dev(mode, group=group, groups=groups)
    assert spied(needs, passable, within=within)["power"]["device"] == opened
    # What is told at a start is what would be found out.
    told = own_dev(mode, number="10 232", group=group, groups=groups)
    words = ["unshare", "--mount", *told, sys.executable, "-c", TELLS, str(passable)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    named = f"module spy cannot open {DEVICE}: its user may not; if it needs one of them, give"
    assert done.stdout[: len(named)] == ("" if opened == "done" else named)


@pytest.mark.skipif(os.getuid() != 0, reason="root alone has powers to keep or to give up")
@pytest.mark.parametrize("uid", [None, uid_of("spy")], ids=["as-root", "as-a-user-of-its-own"])
@pytest.mark.parametrize(
    ("need", "powers"),
    [
        (Privilege.PORTS, {"port"}),
        (Privilege.RAW_SOCKETS, {"raw"}),
        (Privilege.DEVICES, {"device"}),
    ],
)
def test_each_need_gives_one_power(passable, uid, need, powers):
    (passable / "modules").mkdir(mode=0o711)
    folder = str(passable / "modules" / "spy")
    if need is Privilege.DEVICES and not can_have_namespaces():
        pytest.skip("only root that may mount has a /dev of its own here")
    within = own_dev(0o666) if need is Privilege.DEVICES else ()
    told = spied(Confinement((), folder, uid=uid, needs=(need,)), passable, within=within)
    denied = set(POWERS) - powers
    assert told["power"] == dict.fromkeys(powers, "done") | dict.fromkeys(denied, "PermissionError")
    assert (
        told["capabilities"]
        == {
            Privilege.PORTS: ["net_bind_service"],
            Privilege.RAW_SOCKETS: ["net_raw"],
            Privilege.DEVICES: [],
        }[need]
    )


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
def test_what_it_writes_it_may_write_and_nothing_beside_it(unshared):
    boot, other = unshared / "boot", unshared / "other"
    for one in (boot, other):
        one.mkdir()
        (one / one.name).touch()
    home = home_of(unshared)
    confinement = Confinement((str(home),), str(unshared / "spy"), writes=(str(boot),))
    told = spied(confinement, boot / "boot", other / "other")
    assert told["made"] == "done"
    assert told["replaced"] == {"boot": "done", "other": "PermissionError"}


@pytest.mark.skipif(os.getuid() != 0, reason="only root has root's power")
@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
def test_who_keeps_roots_power_reaches_nothing_that_is_hidden_by_no_power_of_it(tmp_path):
    home = home_of(tmp_path)
    confinement = Confinement(
        (str(home),),
        str(tmp_path / "spy"),
        needs=(Privilege.ROOT, Privilege.DEVICES),
        writes=("/",),
    )
    told = spied(confinement, home / "ca.key", home / "state.db")
    denied = dict.fromkeys(("ca.key", "state.db"), "PermissionError")
    assert (told["read"], told["replaced"], told["trace"]) == (denied, denied, "PermissionError")
    done = {"elsewhere", "device", "raw", "user"}
    assert {name for name, came in told["power"].items() if came == "done"} == done
    assert not {"sys_admin", "sys_ptrace", "mknod"} & {*told["capabilities"]}


@pytest.mark.skipif(not can_have_namespaces(), reason="no mounts, or no user namespaces, here")
def test_who_mounts_in_namespaces_of_its_own_reaches_nothing_that_is_hidden(unshared):
    home = home_of(unshared)
    (home / "images").mkdir()
    (home / "images" / "mine").write_text("shared")
    token = home.parent / "client.json"
    token.write_text("hunter2")
    confinement = Confinement(
        (str(home), str(token), str(home.parent / "modules")),
        str(home.parent / "modules" / "spy"),
        shared=(str(home / "images"),),
        needs=(Privilege.NAMESPACES,),
    )
    secret = (home / "ca.key", home / "state.db", token)
    told = spied(confinement, *secret, home / "images" / "mine", unshared / "cluster" / "site.yaml")

    gone = dict.fromkeys(("ca.key", "state.db", "client.json"), "FileNotFoundError")
    assert (told["read"], told["listed"]) == (gone | {"mine": "done", "site.yaml": "done"}, "done")
    # All else is read-only: what root writes, root runs.
    assert told["replaced"] == dict.fromkeys((*gone, "site.yaml"), "OSError") | {"mine": "done"}
    assert (told["own"], told["made"], told["power"]["elsewhere"]) == ("done", "OSError", "OSError")
    assert (told["uid"], told["trace"], told["privileges"]) == (0, "PermissionError", "1")
    assert told["kill"] == ("PermissionError" if landlock_version() >= SIGNALS_FROM else "done")
    denied = dict.fromkeys(("device", "disk", "undone"), "PermissionError")
    assert told["power"] | denied | {"mount": "done"} == told["power"]
    assert [one.read_text() for one in secret] == ["hunter2"] * 3


@pytest.mark.skipif(not can_have_namespaces(), reason="root may not mount here")
def test_who_mounts_for_all_reads_no_memory_and_gains_no_privilege(tmp_path):
    confinement = Confinement((), str(tmp_path / "spy"), needs=(Privilege.MOUNTS,))
    told = spied(confinement, tmp_path)
    assert (told["trace"], told["privileges"], told["power"]["mount"]) == (
        "PermissionError",
        "1",
        "done",
    )
    assert "sys_ptrace" not in told["capabilities"]


@pytest.mark.skipif(os.getuid() != 0, reason="a plain user mounts nothing anyway")
@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
def test_where_root_may_not_mount_nothing_hidden_is_reached_either(tmp_path):
    home = home_of(tmp_path)
    confinement = Confinement((str(home),), str(tmp_path / "spy"), needs=(Privilege.NAMESPACES,))
    secret = (home / "ca.key", home / "state.db")
    told = spied(confinement, *secret, within=("setpriv", "--bounding-set=-sys_admin"))
    assert told["read"] == told["replaced"] == dict.fromkeys(told["read"], "PermissionError")
    denied = dict.fromkeys(("disk", "mount", "undone"), "PermissionError")
    assert told["power"] | denied == told["power"]


@pytest.mark.parametrize("path", ["srv", "/srv/../etc", ""])
def test_a_path_that_is_none_is_not_declared(path):
    with pytest.raises(DeclarationError, match="`writes` names"):
        Manifest("spy", "1", Context.PARENT, (), (), writes=(path,))


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
