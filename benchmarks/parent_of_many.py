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
from queue import Queue
from typing import Final
from uuid import UUID

from benchmarks.children import CHILD_HOST, HELLO_S, PARENT_HOST, ROOT, agreement, name_of
from haptera.daemon.parts import HELLO_PORT
from haptera.daemon.settings import API_PORT
from haptera.model.changes import Author, Change, Declare, SetDesired, StoredEntity
from haptera.model.effects import Write
from haptera.model.entity import node_id
from haptera.model.events import Event, Written
from haptera.planner.domain.pieces import slices
from haptera.runtime.identity.pki import cluster_of
from haptera.runtime.store.sessions import SavedSession
from haptera.runtime.store.store import STATE_FILE, Store

WITHIN_S: Final = 600.0
TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
SITE: Final = """\
cluster: crowd
nodes:
  n000001: {bmc: "{name}"}
desired:
  n000001: {power: on, agent: up}
modules:
  always_on: {place: "always_on:module", context: parent}
  jobs:
"""
# Nothing is looked at, and nothing desired: what is left is to be heard and answered.
BARE: Final = "cluster: crowd\nnodes: {n000001: {bmc: bare}}\nmodules: {jobs: }\n"
WRITTEN_AT_ONCE: Final = 3_000


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

    def fresh(self) -> int:
        """How many nodes' agents are heard."""
        return int(self.metrics().get('haptera_children{tier="fresh"}', 0))

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


def like(first: StoredEntity, name: str) -> Iterator[Change]:
    """What is declared of a node, if it is as the first one."""
    yield Declare(node_id(name), {"bmc": name}, "site")
    for variable, one in first.desired.items():
        yield SetDesired(node_id(name), variable, one.value, one.owner)


def prepare(home: Path, children: int, site_text: str = SITE) -> UUID:
    """Have all declared as the first one, with sessions, in the parent's store.

    Returns the cluster.
    """
    home.mkdir()
    (home / "always_on.py").write_bytes((ROOT / "benchmarks" / "always_on.py").read_bytes())
    site = home / "site.yaml"
    site.write_text(site_text)
    with serving(home, "--site", str(site)) as parent:
        wait_for(lambda: parent.get(f"/v1/entities/node:{name_of(1)}") is not None)
    (ca,) = home.rglob("ca.pem")
    cluster = cluster_of(ca.read_bytes())
    (state,) = home.rglob(STATE_FILE)
    answers = Queue[Event]()
    store = Store.open(state, deliver=answers.put, wall_s=time.time)
    (first,) = (one for one in store.load().entities if one.entity == node_id(name_of(1)))
    names = (name_of(one) for one in range(2, children + 1))
    for some in slices((change for name in names for change in like(first, name)), WRITTEN_AT_ONCE):
        store.submit(Write(1, tuple(some), None, Author("site")))
        assert isinstance(answers.get(timeout=WITHIN_S), Written)
    sessions = [
        SavedSession(name_of(one), agreement(cluster, one), (CHILD_HOST, HELLO_PORT))
        for one in range(1, children + 1)
    ]
    taken = store.adopt(sessions).result(WITHIN_S)
    store.close()
    assert isinstance(taken, list), taken
    assert len(taken) == children
    return cluster
