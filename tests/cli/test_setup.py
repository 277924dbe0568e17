"""A parent and a node set up by one command each, and all that can be wrong with a parent."""

import getpass
import json
import os
import resource
import shlex
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from haptera.cli.commands.setup.ailments import CHECKS, DAY_S, GIB, ailments
from haptera.cli.commands.setup.files import write_file, write_options
from haptera.cli.commands.setup.machine import FILE_BYTES_MAX, InstalledParent, listened, look
from haptera.model.errors import HapteraError
from tests.cli.rig import client_of, command, environment, held, served, typed
from tests.lab.rig import WAIT_S_MAX, wait_for
from tests.network import NETWORK

ADDRESS, NODE = f"{NETWORK}.89.1", f"{NETWORK}.89.2"
SOUND = InstalledParent(Path("/srv"))
# Each check, made true: what is seen, whether that is grave, and words of what is said and done.
BROKEN = [
    ({"is_ours": False}, True, "does not have the address", "--listen"),
    ({"taken": ("UDP 4271",)}, True, "has port UDP 4271", "ss -lntup sport = :4271"),
    ({"keeps_time": False}, False, "nothing keeps the clock", "chrony"),
    ({"encoding": "ANSI_X3.4-1968"}, False, "not UTF-8", "LC_ALL=C.UTF-8"),
    ({"free_bytes": GIB}, False, "1.0 GiB free", "df -h /srv"),
    ({"free_bytes": 1}, True, "0.0 GiB free", "df -h /srv"),
    ({"version": "2.0.0", "runs": "1.0.0"}, True, "runs is 1.0.0", "restart haptera-parent"),
    ({"open_files": (Path("/srv/.haptera/client.json"),)}, True, "others can read", "chmod"),
    ({"silent": "no answer within 5 s"}, True, "is not heard: no answer", "restart haptera-parent"),
    ({"unusable": {Path("/srv/ca.key"): "x"}}, True, "/srv/ca.key cannot be used: x", "restore"),
    ({"foreign": (Path("/srv/state.db"),)}, True, "another user", "chown 0 /srv/state.db"),
    ({"ends_s": {Path("/srv/api.pem"): 20 * DAY_S}}, False, "ends in 20 days", "restart"),
    ({"ends_s": {Path("/srv/api.pem"): -3 * DAY_S}}, True, "ended 3 days ago", "restart"),
    ({"landlock": 0}, False, "no Landlock", "Linux 5.13"),
    ({"sealed": False}, False, "not sealed", "give the parent a key"),
]


def test_nothing_is_wrong_with_what_is_sound() -> None:
    assert ailments(SOUND) == []


@pytest.mark.parametrize(("seen", "grave", "what", "do"), BROKEN)
def test_each_ailment_is_found_and_says_what_mends_it(
    seen: dict[str, object], grave: bool, what: str, do: str
) -> None:
    (one,) = ailments(replace(SOUND, **seen))  # type: ignore[arg-type]
    assert (one.grave, what in one.what, do in one.do) == (grave, True, True), one


def test_no_check_is_left_untried() -> None:
    found = {check for check in CHECKS for seen, *_ in BROKEN if [*check(replace(SOUND, **seen))]}
    assert found == set(CHECKS)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ('HAPTERA_SERVE="--api 10.9.0.9 --listen 10.9.0.1"\n', "10.9.0.1"),
        ("HAPTERA_SERVE=--host=parent.example\n", "127.0.0.1"),
        ("# --listen 10.9.0.1\n", "127.0.0.1"),
        ("", "127.0.0.1"),
    ],
)
def test_the_address_is_that_of_the_options(text: str, address: str, tmp_path: Path) -> None:
    (tmp_path / "parent.env").write_text(text)
    assert listened(tmp_path / "parent.env") == address


@pytest.mark.parametrize("content", [b'HAPTERA_SERVE="--listen', b"\xff\xfe\0", None])
def test_options_that_cannot_be_read_are_said_and_not_waited_for(
    content: bytes | None, tmp_path: Path
) -> None:
    options = tmp_path / "parent.env"
    if content is None:
        os.mkfifo(options)
    else:
        options.write_bytes(content)
    with pytest.raises(HapteraError, match="cannot be read as options") as error:
        listened(options)
    assert error.value.where == str(options)


@pytest.mark.parametrize(
    ("name", "put"),
    [
        ("ca.pem", lambda path: path.write_text("garbage")),
        ("parent.pem", Path.touch),
        ("ca.key", os.mkfifo),
        ("ca.pem", os.mkfifo),
        ("ca.key", Path.mkdir),
        ("ca.pem", lambda path: path.symlink_to("/dev/zero")),
        ("ca.pem", lambda path: path.write_bytes(bytes(FILE_BYTES_MAX + 1))),
    ],
)
def test_a_file_that_cannot_be_used_is_found_and_not_waited_for(
    name: str, put: Callable[[Path], object], tmp_path: Path
) -> None:
    """The folder is its daemon's user's; who looks is root."""
    path = tmp_path / ".haptera" / "parent" / name
    path.parent.mkdir(parents=True, mode=0o700)
    put(path)

    assert list(look(tmp_path, "127.0.0.1").unusable) == [path]


@pytest.mark.net
@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", b"", b"\0"])
def test_a_parent_that_does_not_answer_is_said_to_be_there(answer: bytes, tmp_path: Path) -> None:
    (tmp_path / ".haptera").mkdir()
    place = tmp_path / ".haptera" / "api.sock"
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(place))
        assert look(tmp_path, "127.0.0.1").silent is None
        one.listen()
        thread = threading.Thread(target=answered, args=(one, answer), daemon=True)
        thread.start()
        seen = look(tmp_path, "127.0.0.1")
        one.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert (seen.runs, seen.silent is None, seen.taken) == (None, False, ())


def answered(listening: socket.socket, answer: bytes) -> None:
    with suppress(OSError):
        while True:
            peer, _ = listening.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(answer)


@pytest.mark.parametrize("address", ["", "0.0.0.0", "::1", "a b", "localhost", "127.0.0.1 --debug"])
def test_an_address_at_which_nobody_could_be_reached_is_refused_before_anything_is_written(
    address: str, tmp_path: Path
) -> None:
    own = ("--etc", tmp_path / "etc", "--dir", tmp_path / "state", "--cluster", "kelp")
    code, _, errors = typed("setup", "parent", *own, "--listen", address, folder=tmp_path)
    assert (code, "one IPv4 address" in errors) == (1, True), errors
    assert not (tmp_path / "etc").exists()


@pytest.mark.parametrize("word", ['x"', "x y", "x\nUSER=root", "$HOME", "x;id", "`id`", "", "x\\"])
def test_an_option_that_a_unit_would_read_otherwise_is_refused(word: str, tmp_path: Path) -> None:
    options = tmp_path / "parent.env"
    with pytest.raises(HapteraError, match="cannot be an option of a unit"):
        write_options(options, "HAPTERA_SERVE", ["--host", word])
    assert not options.exists()


def test_a_file_that_has_no_room_leaves_the_one_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "parent.env"
    write_file(path, "before", 0o644)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, hard))
    try:
        with pytest.raises(HapteraError, match="cannot be written"):
            write_file(path, "what comes after it", 0o644)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "before"
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.net
def test_what_is_looked_at_is_so(tmp_path: Path) -> None:
    """On real files, sockets and certificates, before a parent runs, while it does, and after."""
    with held(ADDRESS, 4270), held(ADDRESS, 4271, socket.SOCK_DGRAM):
        assert look(tmp_path, ADDRESS).taken == ("TCP 4270", "UDP 4271")
    assert look(tmp_path, "192.0.2.1").is_ours is False

    (tmp_path / "site.yaml").write_text("cluster: small\n")
    with served(tmp_path, "--site", tmp_path / "site.yaml", address=ADDRESS):
        seen = look(tmp_path, ADDRESS)
        assert (seen.runs, seen.taken, seen.open_files, seen.sealed) == ("0.dev0", (), (), False)
    after = look(tmp_path, ADDRESS)
    assert (after.runs, after.foreign) == (None, ())
    (place,) = (path for path in after.ends_s if path.name == "parent.pem")
    told = ssl._ssl._test_decode_cert(str(place))["notAfter"]  # type: ignore[attr-defined]
    assert (
        after.ends_s[place]
        == datetime.strptime(told, "%b %d %H:%M:%S %Y %Z").replace(tzinfo=UTC).timestamp()
    )
    client_of(tmp_path).chmod(0o640)
    assert look(tmp_path, ADDRESS).open_files == (client_of(tmp_path),)


@pytest.mark.net
@pytest.mark.slow
def test_a_parent_and_a_node_are_set_up_and_run(tmp_path: Path) -> None:
    etc, state = tmp_path / "etc", tmp_path / "state"
    here = ("--etc", etc, "--units", tmp_path / "units", "--no-start")
    own = ("--dir", state, "--user", getpass.getuser(), "--listen", ADDRESS)
    code, said, errors = typed("setup", "parent", *own, "--cluster", "kelp", *here, folder=tmp_path)
    assert code == 0, errors
    assert "haptera setup agent --from -" in said
    site = etc / "site.yaml"
    assert site.read_text().startswith("# yaml-language-server: $schema=site.schema.json\n")
    assert json.loads((etc / "site.schema.json").read_text())["$schema"]
    assert typed("check", site, folder=tmp_path)[0] == 0
    assert "ExecStart=/opt" not in (tmp_path / "units" / "haptera-parent.service").read_text()
    site.write_text(site.read_text().replace("nodes: {}", "nodes: {n1: {}}"))
    assert typed("setup", "parent", *own, *here, folder=tmp_path)[0] == 0
    assert "n1" in site.read_text(), "what is there is kept"

    words = shlex.split((etc / "parent.env").read_text().partition('"')[2].rstrip('"\n'))
    assert words[:2] == ["--listen", ADDRESS]
    with served(state, *words[2:], address=ADDRESS):
        make = ("token", "make", "n1", "--scope", "exec", "--within", "n1", "--client-file")
        given = typed(*make, folder=tmp_path, client=client_of(state))[1]
        join = ("setup", "agent", "--from", "-", "--node", "n1", "--address", NODE, *here)
        assert typed(*join, folder=tmp_path, given=given)[0] == 0
        assert (etc / "agent.json").stat().st_mode & 0o777 == 0o600
        code, _, errors = typed(*join[:5], "n7", *here, folder=tmp_path, given=given)
        assert (code, "limited to n1" in errors) == (1, True)
        line = shlex.split((etc / "agent.env").read_text().partition('"')[2].rstrip('"\n'))
        run = command("agent", "--dir", tmp_path / "run", *line)
        with subprocess.Popen(run, env=environment()) as agent:
            wait_for(lambda: "n1 enrolled" in (state / "serve.out").read_text())
            agent.kill()
            agent.wait(WAIT_S_MAX)
        code, said, _ = typed("doctor", "--dir", state, "--etc", etc, folder=tmp_path)
        assert (code, "not sealed" in said) == (0, True), said


def test_who_cannot_be_asked_is_told_which_options_are_needed(tmp_path: Path) -> None:
    code, _, errors = typed("setup", "parent", "--etc", tmp_path, folder=tmp_path)
    assert (code, "--listen is needed" in errors) == (2, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--from", "https://192.0.2.1:4270"), "needs --token"),
        (("--from", "-", "--token", "hp1.a.b"), "its own token"),
        (("--from", "gone.json"), "name a file that is there"),
        (("--from", "-"), "is not a client file"),
        (("--from", "https://192.0.2.1", "--token", "t", "--authority", "x"), "cannot be read"),
    ],
)
def test_what_is_no_way_to_a_parent_is_refused(
    options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    code, _, errors = typed("setup", "agent", *options, folder=tmp_path, given="{}")
    assert (code != 0, said in errors) == (True, True), errors


@pytest.mark.net
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be one of two users")
def test_a_parent_runs_as_the_user_that_was_named(tmp_path: Path) -> None:
    folders = [f"--{name}={tmp_path / name}" for name in ("dir", "etc", "units")]
    own = (*folders, "--listen", ADDRESS, "--cluster", "kelp", "--no-start")
    drop_in = tmp_path / "units" / "haptera-parent.service.d" / "user.conf"

    for user in ("root", "nobody"):
        code, _, errors = typed("setup", "parent", *own, "--user", user, folder=tmp_path)
        assert code == 0, errors
        text = drop_in.read_text()
        assert f"[Service]\nUser={user}\nGroup=" in text
        assert ("CapabilityBoundingSet=~\n" in text) == (user == "root")
        assert text.count("[Service]") == 1
    code, said, errors = typed("setup", "parent", *own, "--user", "haptera", folder=tmp_path)
    assert (code, drop_in.exists(), f"removed {drop_in}" in said) == (0, False, True), errors
