"""Both sides of the queue are killed (SIGKILL) while jobs are locked, begin and end.

A job writes a line when it begins and one when it ends, with its token, in one write each; what
these lines say is held against what was submitted.
"""

import json
import multiprocessing
import os
import random
import signal
import socket
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from tests.queue.processes import DRIVER, SOCKET, serve

pytestmark = pytest.mark.net

NODES = ("n1", "n2", "n3")
WITHIN_S = 60.0
BATCH = 30
# The night has 500.
KILLS = int(os.environ.get("HAPTERA_QUEUE_KILLS", "40"))
# Forked from one that has imported all: to start a Python anew would take most of the time.
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["__main__", "tests.queue.processes"])
SAY = 'echo "$1 $HAPTERA_JOB $HAPTERA_JOB_TOKEN" >>EFFECTS'
SCRIPT = f"say() {{ {SAY}; }}; say begin; sleep 0.0$((RANDOM % 10)); say end"


class Cluster:
    """One parent and some nodes; all of their processes are ended at the end."""

    def __init__(self, folder: Path, nodes: Sequence[str] = NODES) -> None:
        self.folder = folder
        self.effects = folder / "effects"
        self.script = folder / "job.sh"
        self.script.write_text(SCRIPT.replace("EFFECTS", str(self.effects)))
        self.running: dict[str, BaseProcess] = {}
        self.batches = 0
        for name in ("parent", *nodes):
            self.start(name)

    def start(self, name: str) -> None:
        self.running[name] = one = PROCESSES.Process(target=serve, args=(self.folder, name))
        one.start()

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running[name].join(WITHIN_S)
        assert self.running[name].exitcode == -signal.SIGKILL

    def ask(self, *words: str) -> object:
        """Asked until it is answered: the parent may be dead."""
        until = time.monotonic() + WITHIN_S
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as one:
                    one.settimeout(WITHIN_S)
                    one.connect(str(self.folder / SOCKET))
                    one.sendall(f"{DRIVER}\n{' '.join(words)}\n".encode())
                    if told := one.makefile().readline():
                        return json.loads(told)
            except OSError:
                pass
            assert time.monotonic() < until, (self.folder / "parent.log").read_text()[-2000:]
            pause(0.02)

    def submit(self) -> None:
        """So many more, once: the same key is sent until it is acknowledged."""
        self.batches += 1
        words = ("submit", f"k{self.batches}", str(BATCH), "bash", str(self.script))
        assert self.ask(*words) == BATCH

    def lines(self) -> list[tuple[str, int, int]]:
        text = self.effects.read_text() if self.effects.exists() else ""
        # What has no end yet is being written.
        rows = (line.split() for line in text.splitlines(keepends=True) if line.endswith("\n"))
        return [(what, int(job), int(token)) for what, job, token in rows]

    def await_lines(self, count: int) -> None:
        until = time.monotonic() + WITHIN_S
        while len(self.lines()) < count:
            assert time.monotonic() < until, f"{self.ask('states')}; {len(self.lines())} lines"
            pause(0.005)

    def close(self) -> None:
        for one in self.running.values():
            one.kill()
            one.join(WITHIN_S)


def pause(seconds: float) -> None:
    """Let others run: what is waited for is on disk, and nobody tells of it."""
    time.sleep(seconds)


def check(cluster: Cluster, kills: int, seed: int) -> None:
    """Kill this or that so many times, at a random moment of the work; then judge the effects."""
    rng = random.Random(seed)
    for _ in range(kills):
        done = len(cluster.lines())
        if cluster.batches * BATCH * 2 - done < 4 * BATCH:
            cluster.submit()
        victim = rng.choice(["parent", *NODES])
        cluster.await_lines(done + rng.randrange(1, 5))
        pause(rng.random() * 0.03)
        cluster.kill(victim)
        cluster.start(victim)
    jobs = cluster.batches * BATCH
    cluster.await_lines(2 * jobs)
    until = time.monotonic() + WITHIN_S
    while (states := cluster.ask("states")) != {"complete": jobs}:
        assert time.monotonic() < until, states
        pause(0.05)
    lines = cluster.lines()
    assert Counter(job for what, job, _ in lines if what == "begin") == dict.fromkeys(
        range(1, jobs + 1), 1
    )
    assert len({token for _, _, token in lines}) == jobs
    assert sorted(job for what, job, _ in lines if what == "end") == list(range(1, jobs + 1))


@pytest.mark.slow
def test_jobs_run_once_whatever_is_killed(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        check(cluster, 8, seed=1)
    finally:
        cluster.close()


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_jobs_run_once_whatever_is_killed_often(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    try:
        check(cluster, KILLS, seed=2)
    finally:
        cluster.close()
