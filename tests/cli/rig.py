"""What tests of the real command line share: typing commands, and a real parent to type them to."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

from haptera.cli.output.printing import with_subject
from haptera.model.errors import HapteraError
from tests.lab.rig import WAIT_S_MAX, wait_for
from tests.network import NETWORK, draw_cluster

WAITS = re.compile(r"^waiting for \S+, for up to \d+ s\n", re.MULTILINE)
# A lab of a hundred nodes takes so long to end, where others work on the machine.
# Of whoever runs the tests, and not for what these type.
OURS = ("HAPTERA_CLIENT", "PYTEST_ADDOPTS")
LAB_ENDS_S_MAX = 60
ADDRESS, OTHER = f"{NETWORK}.41.1", f"{NETWORK}.41.2"
SITE = """\
cluster: small
nodes: {"n[1-2]": {rack: "1"}}
desired: {"n[1-2]": {power: on}}
modules: [service]
"""
DESIRED = {"node:n1": "on", "node:n2": "on"}


def command(*arguments):
    return [sys.executable, "-m", "haptera", *map(str, arguments)]


def environment(client=None):
    kept = {name: text for name, text in os.environ.items() if name not in OURS}
    return kept if client is None else {**kept, "HAPTERA_CLIENT": str(client)}


def typed(*arguments, folder, client=None, given=""):
    """What a command answers: its exit code, its output, its errors."""
    done = subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(client),
        input=given,
        capture_output=True,
        text=True,
        timeout=WAIT_S_MAX,
    )
    return done.returncode, done.stdout, without_waits(done.stderr)


@contextmanager
def watching(*arguments):
    """The lines of a command that goes on until it is interrupted, which it must end well by."""
    with subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, env=os.environ, text=True
    ) as process:
        try:
            yield process.stdout
            process.send_signal(signal.SIGINT)
            assert process.wait(WAIT_S_MAX) == 0
        finally:
            process.kill()


def until(lines, beginning):
    """Read on to a line that begins so; the test's time limit is that of waiting."""
    assert any(line.startswith(beginning) for line in lines), beginning


def without_waits(written):
    """All but the lines that say what is waited for: a slow machine has them anywhere."""
    return WAITS.sub("", written)


def told(what, where=None, do=None):
    error = with_subject(HapteraError(what, where=None if where is None else str(where), do=do))
    places = (line for line in (error.where, error.do) if line is not None)
    lines = [f"error: {error.what}", *(f"  {line}" for line in places)]
    return "".join(f"{line}\n" for line in lines)


def point_at(url, token, monkeypatch, tmp_path, mode=0o600):
    path = tmp_path / "client.json"
    path.write_text(json.dumps({"url": url, "token": token}))
    path.chmod(mode)
    monkeypatch.setenv("HAPTERA_CLIENT", str(path))
    return path


def client_of(home):
    return home / ".haptera" / "client.json"


# What a parent logs once it goes by its site file.
APPLIED = "goes by the site file"


@contextmanager
def served(home, *options, address=ADDRESS, within=(), ending=signal.SIGINT):
    """A parent with this directory; it must end well when it is interrupted.

    It is started by the command `within`, if there is one.
    """
    client = client_of(home)
    before = client.read_bytes() if client.exists() else None
    log = home / "serve.out"
    with log.open("w") as out:
        process = subprocess.Popen(
            [*within, *command("serve", "--dir", home, "--listen", address, *options)], stderr=out
        )
    try:
        wait_for(lambda: client.exists() and client.read_bytes() != before)
        wait_for(lambda: typed("status", folder=home, client=client)[0] == 0)
        if "--site" in options:
            wait_for(lambda: APPLIED in log.read_text())
        yield process
    finally:
        process.send_signal(ending)
        code = process.wait(WAIT_S_MAX)
    ends = 0 if ending == signal.SIGINT else -ending
    assert (code, "Traceback" in log.read_text()) == (ends, False)


@contextmanager
def lab(folder, **beside):
    """A lab of the site file there; interrupted, it says that all is well.

    Its processes have these variables beside.
    """
    draw_cluster(folder)
    with subprocess.Popen(
        command("lab", "--dir", folder, "--site", "site.yaml"),
        cwd=folder,
        env={**environment(), **beside},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=LAB_ENDS_S_MAX)
    assert (process.returncode, errors) == (0, "")


def desired(home):
    code, out, _ = typed("get", "node", "-o", "json", folder=home, client=client_of(home))
    assert code == 0
    return {view["entity"]: view["desired"]["power"]["value"] for view in json.loads(out)}


@contextmanager
def held(address, port, sort=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, sort) as one:
        # What an earlier lab left in TIME_WAIT at this address is nobody's.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, sort is socket.SOCK_STREAM)
        one.bind((address, port))
        if sort is socket.SOCK_STREAM:
            one.listen()
        yield
