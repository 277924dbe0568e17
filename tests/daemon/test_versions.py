"""A parent and agents of two versions of this repository, side by side, and the way from one to
the next: the older one is what was here some commits ago.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import pytest

from tests.cli.rig import client_of, command, environment, typed
from tests.lab.rig import ROOT, WAIT_S_MAX, wait_for
from tests.network import NETWORK

COMMITS_BACK = 100
PARENT = f"{NETWORK}.58.1"
NODES = {"n1": f"{NETWORK}.58.2", "n2": f"{NETWORK}.58.3"}
SITE = """\
cluster: small
nodes: {"n[1-2]": {platform: switchless}}
services: {idle: {command: "sleep SECONDS"}}
desired: {"idle@n[1-2]": {run: running}}
modules: {service: {}, switchless: {place: "switchless:module", context: parent}}
"""
# Nodes that are on whenever somebody looks.
SWITCHLESS = """\
from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import PARENT, Module

WHERE = {node.platform: "switchless"}
module = Module("switchless", connect=lambda target: target, context=PARENT, where=WHERE)
power = module.serves(node.power)


@power.look(outcomes=(Power.OFF, Power.ON), every_s=1, within_s=5)
async def look(target):
    return Power.ON
"""
# What a boot hands to a node, made in the place of a module that boots: for each node, in order.
MINT = """
import json, queue, sys, time
from pathlib import Path
from haptera.model.changes import CloseIntent, Declare, OpenIntent
from haptera.model.effects import Write
from haptera.model.entity import node_id
from haptera.model.intent import Intent
from haptera.runtime.identity.pki import open_authority
from haptera.runtime.store.store import Store

home, address, *nodes = sys.argv[1:]
done = queue.SimpleQueue()
authority = open_authority(Path(home), time.time())
store = Store.open(Path(home, "state.db"), deliver=done.put, wall_s=time.time)
for ticket, node in enumerate(nodes):
    boot = Intent(node, node_id(node), "labnode", "switch_on", 0, "boot", enrols=True)
    changes = (Declare(node_id(node), {"platform": "switchless"}, "site"), OpenIntent(boot))
    store.submit(Write(2 * ticket, changes))
    done.get(timeout=60)
    token = store.token_for(node)
    store.submit(Write(2 * ticket + 1, (CloseIntent(node, begun=True),)))
    done.get(timeout=60)
    print(json.dumps({"parent": address, "token": token, "ca": authority.ca_pem.decode()}))
store.close()
"""
STORE_VERSION = "from haptera.runtime.store.schema_sql import VERSION; print(VERSION)"
# What stands for all that two sides plan with, and for services alone, if a version has that.
SCHEMA = """
from haptera.daemon.parts import catalog_of, codec_of
catalog = catalog_of(["service", "jobs"])
schema = getattr(catalog, "schema", None)
print(codec_of(catalog).schema, schema and schema.planned["service"].digest)
"""

pytestmark = [pytest.mark.net, pytest.mark.long, pytest.mark.timeout(480)]


@dataclass(frozen=True)
class Build:
    """One version of haptera, by the folder of its source."""

    source: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**environment(), "PYTHONPATH": str(self.source)}

    def told(self, script: str, *arguments: object) -> str:
        """What a script prints that runs on it."""
        words = [sys.executable, "-c", script, *map(str, arguments)]
        return subprocess.run(
            words, env=self.environment, capture_output=True, text=True, check=True
        ).stdout

    def plans_services_as(self, other: "Build") -> bool:
        schema, services = zip(*(one.told(SCHEMA).split() for one in (self, other)), strict=True)
        return len({*schema}) == 1 or (len({*services}) == 1 and services[0] != "None")

    @contextlib.contextmanager
    def running(
        self, *arguments: object, log: Path, given: bytes = b""
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A process of it, killed in the end as a power loss would."""
        with log.open("a") as out:
            process = subprocess.Popen(
                command(*arguments),
                stdin=subprocess.PIPE,
                stderr=out,
                env=self.environment,
            )
        try:
            assert process.stdin is not None
            process.stdin.write(given)
            process.stdin.close()
            yield process
        finally:
            process.kill()
            process.wait(WAIT_S_MAX)


TODAY = Build(ROOT / "src")
# Of kinds, or of parts of a module: either keeps a side from planning by the other's.
DIFFERS = "(has other kinds|runs service 1 with other parts)"
# What a kind may have some day.
LATER = """
import dataclasses
from haptera.model.declared.schema import Attribute
kind = dataclasses.replace(kind, attributes=(*kind.attributes, Attribute(kind.name, "later")))
"""


@pytest.fixture
def older(tmp_path: Path) -> Build:
    """What was here some commits ago, where the history is here too."""
    words = ["git", "-C", str(ROOT), "archive", f"HEAD~{COMMITS_BACK}", "src"]
    try:
        told = subprocess.run(words, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"needs a clone with {COMMITS_BACK} commits of history")
    with tarfile.open(fileobj=BytesIO(told.stdout)) as files:
        files.extractall(tmp_path / "older", filter="data")
    return Build(tmp_path / "older" / "src")


def later(folder: Path, kind: str) -> Build:
    """What may be here some day: all as today, but for this kind."""
    source = folder / "later" / "src"
    shutil.copytree(TODAY.source, source)
    with (source / "haptera" / "kinds" / f"{kind}.py").open("a") as file:
        file.write(LATER)
    return Build(source)


def running(seconds: int) -> dict[int, str]:
    """The services that sleep so long, and their keepers: what each process was begun with."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes()
            if words.endswith(f"sleep\0{seconds}\0".encode()):
                found[int(process.name)] = words.partition(b"\0")[0].decode()
    return found


def sleepers(seconds: int) -> set[int]:
    """The services that run so: one on each node."""
    return {process for process, program in running(seconds).items() if program == "sleep"}


@dataclass
class Cluster:
    """A parent's home, and the agents of two nodes; each process may be of another build."""

    folder: Path
    agents: contextlib.ExitStack

    # What tells its services from others of this machine.
    base: int = field(default_factory=lambda: 100_000 + os.getpid())

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def begin(self, build: Build) -> list[str]:
        """Make the parent's state, with what each node is handed as it boots."""
        (self.home / "site.yaml").write_text(SITE.replace("SECONDS", str(self.base)))
        kept = self.home / ".haptera" / "parent"
        kept.mkdir(parents=True, mode=0o700)
        return build.told(MINT, kept, f"{PARENT}:4271", *NODES).splitlines()

    def apply(self, seconds: int) -> None:
        """Desire that the services sleep so long."""
        site = self.home / "site.yaml"
        site.write_text(SITE.replace("SECONDS", str(seconds)))
        # A parent that was just started may not listen yet.
        wait_for(lambda: self._is_applied(site))

    def _is_applied(self, site: Path) -> bool:
        """What restarts more than a tenth of all services is confirmed by its plan's digest."""
        client = client_of(self.home)
        planned = typed("plan", site, folder=self.home, client=client)
        named = re.search(r"--digest ([0-9a-f]+)", planned[1])
        words = ("--digest", named[1]) if named else ()
        return typed("apply", site, *words, folder=self.home, client=client)[0] == 0

    def says(self, words: str, *asked: str) -> None:
        """Wait until a command says so, in a pattern of `re`."""
        client = client_of(self.home)
        wait_for(lambda: re.search(words, typed(*asked, folder=self.home, client=client)[1]))

    def is_settled(self) -> None:
        client = client_of(self.home)
        wait_for(lambda: typed("status", "--check", folder=self.home, client=client)[0] == 0)

    def serve(self, build: Build) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
        words = ("--dir", self.home, "--listen", PARENT, "--hello", "0.5")
        site = ("--site", self.home / "site.yaml")
        return build.running("serve", *words, *site, log=self.home / "parent.log")

    def enter(self, build: Build, node: str, invitation: str = "") -> subprocess.Popen[bytes]:
        """An agent of this node."""
        given = ("--invitation", "-") if invitation else ()
        words = ("agent", "--dir", self.folder / node, "--address", NODES[node], *given)
        log = self.home / f"{node}.log"
        return self.agents.enter_context(build.running(*words, log=log, given=invitation.encode()))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with contextlib.ExitStack() as agents:
        one = Cluster(tmp_path, agents)
        one.home.mkdir()
        (one.home / "switchless.py").write_text(SWITCHLESS)
        yield one
    # Services and their keepers outlive their agents.
    for process in (*running(one.base), *running(one.base + 1)):
        os.kill(process, signal.SIGKILL)


def test_agents_of_two_versions_follow_a_parent_that_goes_from_one_to_the_other(
    cluster: Cluster, older: Build
) -> None:
    base = cluster.base
    first, second = cluster.begin(older)
    alike = older.plans_services_as(TODAY)
    with cluster.serve(older):
        old_agent = cluster.enter(older, "n1", first)
        cluster.enter(TODAY, "n2", second)
        if not alike:
            # It plans nothing by parts that its parent may not know, and says so.
            cluster.says(f"the parent {DIFFERS}", "chain", "service:idle@n2")
        wait_for(lambda: len(sleepers(base)) == 1 + alike)
        before = sleepers(base)

    with cluster.serve(TODAY):
        wait_for(lambda: len(sleepers(base)) == 2)
        cluster.apply(base + 1)
        wait_for(lambda: len(sleepers(base + 1)) == 1 + alike)
        if not alike:
            # Nothing is disturbed where it cannot be planned.
            assert sleepers(base) == before
            cluster.says(f"the agent of n1 {DIFFERS}", "why", "service:idle@n1")
        old_agent.kill()
        old_agent.wait(WAIT_S_MAX)
        cluster.enter(TODAY, "n1")  # by the session that the older one saved: nothing boots
        wait_for(lambda: len(sleepers(base + 1)) == 2)
        cluster.is_settled()
        assert sleepers(base) == set()

    if older.told(STORE_VERSION) != TODAY.told(STORE_VERSION):
        with cluster.serve(older) as refused:
            assert refused.wait(WAIT_S_MAX) != 0
        assert "nothing was changed" in (cluster.home / "parent.log").read_text()


@pytest.mark.parametrize("ahead", ["parent", "agents"])
def test_services_are_begun_kept_and_changed_between_versions_that_plan_them_alike(
    cluster: Cluster, ahead: str
) -> None:
    base, other = cluster.base, later(cluster.folder, "image")
    parent, agents = (other, TODAY) if ahead == "parent" else (TODAY, other)
    invitations = cluster.begin(parent)
    assert parent.told(SCHEMA).split()[0] != agents.told(SCHEMA).split()[0]
    with cluster.serve(parent):
        for node, invitation in zip(NODES, invitations, strict=True):
            cluster.enter(agents, node, invitation)
        wait_for(lambda: len(sleepers(base)) == 2)
        killed = min(sleepers(base))
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: len(sleepers(base) - {killed}) == 2)
        cluster.apply(base + 1)
        wait_for(lambda: len(sleepers(base + 1)) == 2)
        cluster.is_settled()
        assert sleepers(base) == set()


def test_services_that_one_side_plans_otherwise_stay_until_both_are_of_one_version(
    cluster: Cluster,
) -> None:
    base, other = cluster.base, later(cluster.folder, "service")
    first, second = cluster.begin(TODAY)
    with cluster.serve(TODAY):
        agent = cluster.enter(TODAY, "n1", first)
        wait_for(lambda: len(sleepers(base)) == 1)
        before = sleepers(base)
        cluster.enter(TODAY, "n2", second)
        wait_for(lambda: len(sleepers(base)) == 2)
        agent.kill()
        agent.wait(WAIT_S_MAX)
        agent = cluster.enter(other, "n1")
        cluster.apply(base + 1)
        cluster.says("the agent of n1 has other kinds: service", "why", "service:idle@n1")
        wait_for(lambda: len(sleepers(base + 1)) == 1)
        assert sleepers(base) == before
    with cluster.serve(other):
        wait_for(lambda: len(sleepers(base + 1)) == 2)
        before = sleepers(base + 1)
        cluster.apply(base)
        cluster.says("the agent of n2 has other kinds: service", "why", "service:idle@n2")
        wait_for(lambda: len(sleepers(base)) == 1)
        assert len(sleepers(base + 1) & before) == 1
    agent.kill()
    agent.wait(WAIT_S_MAX)
    with cluster.serve(TODAY):
        cluster.enter(TODAY, "n1")
        wait_for(lambda: len(sleepers(base)) == 2)
        cluster.is_settled()
        assert sleepers(base + 1) == set()
