"""A node that is drained or held, with real processes: what runs there runs on, whoever dies.

The jobs' own files say which processes there are, and the kernel whether they live.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.kills.processes import lives
from tests.queue.test_kills import WITHIN_S, Cluster, pause

pytestmark = [pytest.mark.net, pytest.mark.slow]

# A job begins once: a second time would be a second line.
SCRIPT = 'echo $$ >>"PIDS/$HAPTERA_JOB"; exec sleep 1000'


class OneNode:
    """A parent, and one node that has room for four jobs; each writes its process id."""

    def __init__(self, folder: Path) -> None:
        self.pids = folder / "pids"
        self.pids.mkdir()
        self.script = folder / "long.sh"
        self.script.write_text(SCRIPT.replace("PIDS", str(self.pids)))
        self.cluster = Cluster(folder, nodes=("n1",))

    def ask(self, *words: str) -> object:
        return self.cluster.ask(*words)

    def submit(self, key: str) -> None:
        assert self.ask("submit", key, "1", "bash", str(self.script)) == 1

    def work(self, wish: str) -> object:
        return self.ask("work", "n1", wish)

    def await_pid(self, job: int) -> int:
        """The one process of a job that has begun."""
        file = self.pids / str(job)
        self.comes(lambda: file.exists() and file.read_text().endswith("\n"))
        (pid,) = file.read_text().split()
        return int(pid)

    def is_asked_anew(self) -> None:
        """Have the node ask for work, in an asking that begins from now on, and be answered."""
        before = self.ask("asked", "n1")
        self.cluster.kill("n1")
        self.cluster.start("n1")
        self.comes(lambda: self.ask("asked", "n1") not in (None, before))

    def restart_parent(self) -> None:
        self.cluster.kill("parent")
        self.cluster.start("parent")
        self.comes(lambda: self.ask("asked", "n1") is not None)

    def comes(self, so) -> None:
        until = time.monotonic() + WITHIN_S
        while not so():
            assert time.monotonic() < until, f"{self.ask('states')}; {self.ask('duties')}"
            pause(0.02)

    def close(self) -> None:
        self.cluster.close()
        for file in self.pids.iterdir():
            for pid in map(int, file.read_text().split()):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@pytest.fixture
def one_node(tmp_path):
    one = OneNode(tmp_path)
    try:
        yield one
    finally:
        one.close()


@pytest.mark.parametrize(("wish", "stands"), [("draining", "draining"), ("held", "hold")])
def test_n6_n9_nothing_new_begins_whoever_restarts_and_what_runs_runs_on(
    one_node: OneNode, wish: str, stands: str
) -> None:
    one_node.submit("first")
    first = one_node.await_pid(1)
    assert one_node.work(wish) == stands
    one_node.submit("second")
    one_node.is_asked_anew()
    one_node.restart_parent()
    one_node.is_asked_anew()
    assert one_node.ask("duties") == {"n1": stands}
    assert one_node.ask("states") == {"running": 1, "queued": 1}
    assert one_node.work("open") == "busy"
    second = one_node.await_pid(2)
    assert one_node.await_pid(1) == first
    assert lives(first)
    assert lives(second)
    for pid in (first, second):
        os.kill(pid, signal.SIGKILL)
    one_node.comes(lambda: one_node.ask("states") == {"failed": 2})
    one_node.comes(lambda: one_node.ask("duties") == {"n1": "idle"})


def test_n5_at_the_deadline_of_a_drain_what_runs_is_stopped_although_the_parent_died(
    one_node: OneNode,
) -> None:
    one_node.submit("first")
    first = one_node.await_pid(1)
    assert one_node.ask("work", "n1", "draining", "2") == "draining"
    one_node.restart_parent()
    one_node.comes(lambda: one_node.ask("duties") == {"n1": "drained"})
    assert one_node.ask("states") == {"cancelled": 1}
    assert not lives(first)
