"""Whole labs of real processes, with stand-ins for parent and agent."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest

from haptera.lab.layout import Places, octet, open_cluster
from haptera.lab.leftovers import MARK
from haptera.lab.tree import descendants, kill, processes, read_process
from haptera.runtime import clock
from tests.kills.processes import lives
from tests.lab.rig import (
    ROOT,
    WAIT_S_MAX,
    Node,
    command,
    kill_if_there,
    read_pid,
    wait_for,
)
from tests.network import draw_cluster

pytestmark = [pytest.mark.net, pytest.mark.slow]

START = """
import asyncio, sys
from pathlib import Path
from haptera.lab.layout import LabConfig, LabNode, Places, octet, open_cluster
from haptera.lab.supervisor import open_lab, run_lab
from haptera.model.errors import HapteraError

places = Places(Path(sys.argv[1]))
cluster = open_cluster(places)
x = octet(cluster)
nodes = tuple(
    LabNode(f"n{n}", f"127.{x}.1.{n}", f"127.{x}.2.{n}:4280", delay_ms=0) for n in (1, 2)
)
config = LabConfig(
    places.directory, cluster, nodes, f"{sys.argv[2]}:parent", f"{sys.argv[2]}:agent"
)

async def embed() -> int:
    async with open_lab(config):
        child = await asyncio.create_subprocess_exec("sh", "-c", "sleep 0.5; exit 7")
        other = await asyncio.create_subprocess_exec("true")  # its end is a SIGCHLD
        return await other.wait() or await child.wait()

try:
    if sys.argv[3:]:
        sys.exit(asyncio.run(embed()))
    asyncio.run(run_lab(config))
except HapteraError as error:
    sys.exit(str(error))
"""


@dataclass
class Lab:
    """A lab of two nodes, as a process."""

    places: Places
    process: subprocess.Popen[str]

    @property
    def cluster(self) -> UUID:
        return open_cluster(self.places)

    def node(self, name: str) -> Node:
        place = wait_for(lambda: _read(self.places.node(name) / "bmc" / "address"))
        host, port = place.strip().split(":")
        home = self.places.node(name)
        return Node(home, home / "bmc" / "commands.jsonl", (host, int(port)))

    @property
    def parent(self) -> int:
        """The pid of a parent that has begun."""
        wait_for(lambda: _read(self.places.parent / "seen"))
        return wait_for(lambda: read_pid(self.places.parent / "parent.pid"))

    def boot_all(self) -> list[int]:
        """Both nodes on; all pids that a lab has, and one that descends from none of it."""
        for name in ("n1", "n2"):
            node = self.node(name)
            wait_for(lambda node=node: node.power_if_answered())
            node.switch("on", f"boot-{name}")
            assert node.agent
            wait_for(lambda node=node: read_pid(node.run / "daemon"))
        assert self.parent
        return [one.pid for one in descendants([self.process.pid]) if not one.dead]


def test_a_lab_runs_its_parent_and_ends_all_it_started_when_interrupted(tmp_path: Path) -> None:
    with lab(tmp_path) as one:
        pids = one.boot_all()
        seen = json.loads((one.places.parent / "seen").read_text())
        assert seen == {
            "arguments": {
                "cluster": str(one.cluster),
                "directory": str(one.places.parent),
                "address": f"127.{octet(one.cluster)}.0.1",
                "client": str(one.places.client),
            },
            "fds": 0,
        }
        one.process.send_signal(signal.SIGINT)
        assert one.process.wait(WAIT_S_MAX) == 0
        assert [pid for pid in pids if lives(pid)] == []
        assert marked(one.cluster) == []
        assert [path.name for path in tmp_path.iterdir()] == [".haptera"]


def test_a_killed_parent_is_started_again(tmp_path: Path) -> None:
    with lab(tmp_path) as one:
        first = one.parent
        os.kill(first, signal.SIGKILL)
        assert wait_for(lambda: _other(one.places.parent / "parent.pid", first))


def test_what_a_killed_lab_left_is_ended_by_the_next(tmp_path: Path) -> None:
    with lab(tmp_path) as one:
        one.boot_all()
        left = marked(one.cluster)
        one.process.kill()
        one.process.wait()
        # An orphan of orphans, too, which only its mark can give away.
        orphan = wait_for(lambda: read_pid(one.node("n1").run / "daemon"))
        for pid in left:
            if pid != orphan and "n1" in command(pid):
                kill_if_there(pid)
        assert lives(orphan)
        service = leave_service(one.node("n2").run)
        with lab(tmp_path) as other:
            wait_for(lambda: other.node("n1").power_if_answered() == "off" or None)
            assert [pid for pid in left if lives(pid)] == []
            assert service.wait(WAIT_S_MAX) == -signal.SIGKILL
            assert not (other.places.node("n1") / "agent.pid").exists()


def test_two_labs_live_side_by_side(tmp_path: Path) -> None:
    with lab(tmp_path / "a") as one:
        one.boot_all()
        # A cluster's octet is drawn among those that no running lab uses.
        with lab(tmp_path / "b") as other:
            pids = other.boot_all()
            assert octet(one.cluster) != octet(other.cluster)
            one.process.send_signal(signal.SIGTERM)
            assert one.process.wait(WAIT_S_MAX) == 0
            assert all(lives(pid) for pid in pids)


def test_who_embeds_a_lab_keeps_its_own_children(tmp_path: Path) -> None:
    with lab(tmp_path, None, "tests.lab.standin", "embed") as one:
        assert one.process.wait(WAIT_S_MAX) == 7
        assert marked(one.cluster) == []


def test_what_cannot_be_imported_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    with lab(tmp_path, subprocess.PIPE, "tests.lab.nothing") as one:
        assert one.process.wait(WAIT_S_MAX) == 1
        assert one.process.stderr is not None
        said = one.process.stderr.read()
        assert "No module named 'tests.lab.nothing'" in said
        assert said.splitlines()[-1].startswith("parent cannot be started")
        assert marked(one.cluster) == []


def test_a_killed_zygote_costs_no_node_its_power(tmp_path: Path) -> None:
    with lab(tmp_path) as one:
        one.boot_all()
        node = one.node("n1")
        agent = node.agent
        (zygote,) = [p for p in processes() if p.parent == one.process.pid]
        kill(zygote)
        os.kill(one.parent, signal.SIGKILL)
        assert wait_for(lambda: _other(one.places.parent / "parent.pid", zygote.pid))
        assert (node.power, node.agent) == ("on", agent)
        one.process.send_signal(signal.SIGINT)
        assert one.process.wait(WAIT_S_MAX) == 0
        assert marked(one.cluster) == []


def test_a_killed_chassis_takes_its_node_with_it_and_comes_back_off(tmp_path: Path) -> None:
    with lab(tmp_path) as one:
        one.boot_all()
        node, other = one.node("n1"), one.node("n2")
        gone = [node.agent, wait_for(lambda: read_pid(node.run / "daemon"))]
        kept = other.agent
        for process in descendants([one.process.pid]):
            if command(process.pid) == "chassis n1":
                kill(process)
        wait_for(lambda: node.power_if_answered() == "off" or None)
        wait_for(lambda: not any(lives(pid) for pid in gone) or None)
        assert (other.power, other.agent) == ("on", kept)


@contextmanager
def lab(
    directory: Path, stderr: int | None = None, module: str = "tests.lab.standin", *more: str
) -> Iterator[Lab]:
    directory.mkdir(exist_ok=True)
    draw_cluster(directory)
    process = subprocess.Popen(
        [sys.executable, "-c", START, str(directory), module, *more],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=stderr,
        text=True,
    )
    places = Places(directory)
    try:
        yield Lab(places, process)
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
        for pid in [] if lock_holder_lives(places, process.pid) else marked(open_cluster(places)):
            kill_if_there(pid)


def leave_service(run: Path) -> subprocess.Popen[bytes]:
    """A process without mark and descent, which only its keeper wrote down."""
    service = subprocess.Popen(["sleep", "1000"], env={})
    process = read_process(service.pid)
    assert process is not None
    home = run / "services" / "web"
    home.mkdir(parents=True)
    who = f"{service.pid} {process.started}"
    state = f"boot {clock.kernel_boot()}\nservice {who}\nkeeper {who}\ndigest 0\n"
    (home / "state").write_text(state)
    return service


def marked(cluster: UUID) -> list[int]:
    """All living processes that bear the cluster's mark, found in a way of our own."""
    mark = f"{MARK}={cluster}\0".encode()
    found = []
    for process in processes():
        try:
            environ = Path(f"/proc/{process.pid}/environ").read_bytes()
        except OSError:
            continue
        if mark in environ and not process.dead:
            found.append(process.pid)
    return found


def lock_holder_lives(places: Places, but: int) -> bool:
    holder = read_pid(places.lab / "lab.lock")
    return holder is not None and holder != but and lives(holder)


def _read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def _other(path: Path, than: int) -> int | None:
    pid = read_pid(path)
    return pid if pid is not None and pid != than and lives(pid) else None
