"""A real parent of very many children, with machines that are on and that nobody should switch."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final
from uuid import UUID

from benchmarks.children import CHILD_HOST, HELLO_S, PARENT_HOST, ROOT, agreement, name_of
from haptera.daemon.parts import HELLO_PORT
from haptera.daemon.settings import API_PORT
from haptera.runtime.identity.pki import cluster_of
from haptera.runtime.store.sessions import SavedSession
from haptera.runtime.store.store import STATE_FILE, Store

WITHIN_S: Final = 600.0
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
SITE: Final = """\
cluster: crowd
nodes:
  "n[000001-{last:06}]": {{bmc: "{{name}}"}}
desired:
  "n[000001-{last:06}]": {{power: on, agent: up}}
modules:
  always_on: {{place: "always_on:module", context: parent}}
  jobs:
"""


def cpu_s(pid: int) -> float:
    """The processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def wait_for(found: Callable[[], bool], pause_s: float = 0.5) -> None:
    until = time.monotonic() + WITHIN_S
    while not found():
        assert time.monotonic() < until, "waited without success"
        time.sleep(pause_s)


class Parent:
    """`haptera serve` in its directory, started."""

    def __init__(self, home: Path, *words: str) -> None:
        self.began_at = time.monotonic()
        self._client_file = home / ".haptera" / "client.json"
        command = [sys.executable, "-m", "haptera", "serve", "--dir", str(home)]
        # As where it is installed: its code is compiled once.
        compiled = {k: one for k, one in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        with (home / "serve.err").open("a") as errors:
            self.process = subprocess.Popen(
                [*command, "--hello", f"{HELLO_S:g}", *words], stderr=errors, env=compiled
            )

    def get(self, path: str) -> str | None:
        """What the API says; None while it does not serve."""
        try:
            token = json.loads(self._client_file.read_bytes())["token"]
            with closing(HTTPConnection(PARENT_HOST, API_PORT, timeout=60)) as connection:
                connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
                answer = connection.getresponse()
                text = answer.read().decode()
                return text if answer.status == HTTPStatus.OK else None
        except (OSError, HTTPException):
            return None

    def converged(self) -> int:
        """How many nodes are known to be as desired, their agents heard."""
        said = json.loads(self.get("/v1/summary") or '{"counts": {}}')
        return int(said["counts"].get("node", {}).get("converged", 0))

    def metrics(self) -> dict[str, float]:
        """Each by its name with its labels."""
        text = self.get("/metrics") or ""
        return {one[1]: float(one[2]) for one in re.finditer(r"(?m)^(\w\S*) (\S+)$", text)}

    def enrolments(self) -> int:
        """How many handshakes of this process ended with a session."""
        return int(sum(n for one, n in self.metrics().items() if "enrolments_total{" in one))

    def cpu_s(self) -> float:
        return cpu_s(self.process.pid)

    def resident_kb(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])


@contextmanager
def serving(home: Path, *words: str) -> Iterator[Parent]:
    """A parent that ends with the block."""
    parent = Parent(home, *words)
    try:
        yield parent
    finally:
        parent.process.send_signal(signal.SIGTERM)
        parent.process.wait()


def prepare(home: Path, children: int) -> UUID:
    """Have all declared, and their sessions in the parent's store; returns the cluster."""
    home.mkdir()
    (home / "always_on.py").write_bytes((ROOT / "benchmarks" / "always_on.py").read_bytes())
    site = home / "site.yaml"
    site.write_text(SITE.format(last=children))
    with serving(home, "--site", str(site)) as parent:
        last = f"/v1/entities/node:{name_of(children)}"
        wait_for(lambda: parent.get(last) is not None)
    (ca,) = home.rglob("ca.pem")
    cluster = cluster_of(ca.read_bytes())
    (state,) = home.rglob(STATE_FILE)
    store = Store.open(state, deliver=lambda written: None, wall_s=time.time)
    sessions = [
        SavedSession(name_of(one), agreement(cluster, one), (CHILD_HOST, HELLO_PORT))
        for one in range(1, children + 1)
    ]
    taken = store.adopt(sessions).result(WITHIN_S)
    store.close()
    assert isinstance(taken, list), taken
    assert len(taken) == children
    return cluster
