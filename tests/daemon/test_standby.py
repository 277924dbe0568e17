"""A standby has every write that its primary acknowledged as replicated, and takes over."""

import json
import os
import signal
import socket
import subprocess
import tempfile
import urllib.request
from base64 import urlsafe_b64encode
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from haptera.daemon.tree.standby import SOCKET
from tests.cli.rig import client_of, command, environment, typed
from tests.lab.rig import wait_for
from tests.network import NETWORK

WEB = """\
cluster: small
nodes: {n1: {rack: "1"}}
services: {web: {command: web, port: 80}}
desired: {web@n1: {run: running}}
modules: [service]
"""
PRIMARY, STANDBY = f"{NETWORK}.47.1", f"{NETWORK}.47.2"


@contextmanager
def started(*arguments, log, client=None, **beside):
    """A process with these variables beside; it is killed in the end, if it is there still."""
    with log.open("w") as out:
        env = {**environment(client), **beside}
        process = subprocess.Popen(command(*arguments), stderr=out, env=env)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in log.read_text(), log.read_text()


def asked(client, method, path, body=None):
    """The status, the headers and the body of an answer."""
    access = json.loads(client.read_text())
    request = urllib.request.Request(
        access["url"] + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {access['token']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers, json.loads(answer.read())


def write(client, number):
    """Desire another value; where it is durable now."""
    path = "/v1/entities/service:web@n1/desired?take=1"
    headers, _ = asked(client, "PATCH", path, {"port": 1000 + number})
    return headers["Haptera-Durability"]


def is_declared(client):
    """Whether a parent serves, and has read its site."""
    try:
        asked(client, "GET", "/v1/entities/service:web@n1")
    except OSError:
        return False
    return True


def lag(client):
    access = json.loads(client.read_text())
    request = urllib.request.Request(
        access["url"] + "/metrics", headers={"Authorization": f"Bearer {access['token']}"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return [line.split()[1] for line in lines if line.startswith("haptera_standby_lag_commits ")]


@contextmanager
def started_pair(primary, standby):
    """A primary, and a process that follows it in another folder and has all of it."""
    for folder in (primary, standby):
        folder.mkdir(exist_ok=True)
    (primary / "site.yaml").write_text(WEB)
    client = client_of(primary)
    serve = ("serve", "--dir", primary, "--listen", PRIMARY, "--site", primary / "site.yaml")
    follow = ("standby", "--dir", standby, "--listen", STANDBY)
    with started(*serve, log=primary / "primary.log") as process:
        wait_for(lambda: is_declared(client))
        assert write(client, 0) == "local"
        with started(*follow, log=primary / "standby.log", client=client) as follower:
            wait_for(lambda: lag(client) == ["0.0"])
            yield process, follower


@pytest.mark.net
@pytest.mark.slow
def test_a_promoted_standby_has_all_that_was_acknowledged_as_replicated(tmp_path):
    primary, standby = tmp_path / "primary", tmp_path / "standby"
    client = client_of(primary)
    with started_pair(primary, standby) as (process, follower):
        code, _, told = typed("promote", "--dir", standby, folder=tmp_path)
        assert (code, "still answers" in told) == (1, True)
        for number in range(1, 40):
            # On a busy machine a standby may be late for one; it is back at the next.
            wait_for(lambda number=number: write(client, number) == "replicated")
        process.send_signal(signal.SIGKILL)
        process.wait()
        code, out, err = typed("promote", "--dir", standby, folder=tmp_path)
        assert (code, out.startswith("promoted at revision"), err) == (0, True, "")
        new = client_of(standby)
        wait_for(lambda: new.exists() and typed("status", folder=standby, client=new)[0] == 0)
        _, view = asked(new, "GET", "/v1/entities/service:web@n1")
        assert view["desired"]["port"] == {"value": 1039, "owner": "user:cli"}
        # Tokens of before hold, and it is a store of its own.
        old = json.loads(client.read_text()) | {"url": json.loads(new.read_text())["url"]}
        moved = tmp_path / "moved.json"
        moved.write_text(json.dumps(old))
        assert write(moved, 40) == "local"
        assert follower.poll() is None


@pytest.mark.net
@pytest.mark.slow
def test_a_standby_that_stops_answering_holds_nobody_up_for_long(tmp_path):
    client = client_of(tmp_path / "primary")
    with started_pair(tmp_path / "primary", tmp_path / "standby") as (_, follower):
        follower.send_signal(signal.SIGSTOP)
        wait_for(lambda: write(client, 1) == "local")
        follower.send_signal(signal.SIGCONT)
        wait_for(lambda: write(client, 2) == "replicated")


@pytest.mark.net
@pytest.mark.slow
def test_a_standby_without_the_key_says_so_at_once_and_is_promoted_only_with_it(tmp_path):
    primary, standby, key = tmp_path / "primary", tmp_path / "standby", tmp_path / "key"
    for folder in (primary, standby):
        folder.mkdir()
    key.write_bytes(urlsafe_b64encode(b"k" * 32))
    key.chmod(0o600)
    site, log = tmp_path / "site.yaml", tmp_path / "standby.log"
    site.write_text(WEB)
    client = client_of(primary)
    serve = ("serve", "--dir", primary, "--listen", PRIMARY, "--site", site)
    follow = ("standby", "--dir", standby, "--listen", STANDBY)
    why = "ca.key is sealed, and no key is given"
    with started(*serve, log=tmp_path / "primary.log", HAPTERA_SECRETS_KEY=str(key)) as process:
        wait_for(lambda: is_declared(client))
        with started(*follow, log=log, client=client):
            wait_for(lambda: f"cannot be promoted: {standby}" in log.read_text())
            assert why in log.read_text()
            process.kill()
            process.wait()
            code, _, told = typed("promote", "--dir", standby, folder=tmp_path)
            assert (code, why in told) == (1, True)
    with started(*follow, log=log, client=client, HAPTERA_SECRETS_KEY=str(key)):
        promote = ("promote", "--dir", standby)
        wait_for(lambda: typed(*promote, folder=tmp_path)[0] == 0)
        new = client_of(standby)
        wait_for(lambda: new.exists() and typed("status", folder=standby, client=new)[0] == 0)
    assert b"PRIVATE KEY" not in (standby / ".haptera" / "parent" / "ca.key").read_bytes()


ASKS = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


@pytest.mark.net
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="another user is one that root becomes")
def test_a_stranger_promotes_no_standby_and_rubbish_at_its_door_does_nothing(tmp_path):
    with (
        tempfile.TemporaryDirectory() as reached,
        started_pair(tmp_path, Path(reached)) as (_, process),
    ):
        Path(reached).chmod(0o755)
        door = Path(reached) / ".haptera/parent" / SOCKET
        wait_for(lambda: door.exists())
        assert not any(one.stat().st_mode & 0o077 for one in (door, door.parent))
        asked = subprocess.run(
            ["setpriv", "--reuid", "65534", "--clear-groups", "/usr/bin/python3", "-c", ASKS, door],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "Permission denied" in asked.stderr
        for said in (b"", b"promote", b"{}" * 9_000, b'{"anyway": 1}', b"\xff\0"):
            with socket.socket(socket.AF_UNIX) as caller, suppress(OSError):
                caller.connect(str(door))
                caller.sendall(said)
                caller.shutdown(socket.SHUT_WR)
                assert b"not a command" in caller.recv(4_096)
        code, _, told = typed("promote", "--dir", reached, folder=tmp_path)
        assert (code, "still answers" in told, process.poll()) == (1, True, None), told
