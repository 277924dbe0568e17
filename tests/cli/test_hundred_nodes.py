"""A lab of 100 nodes: it comes up, its parent dies while jobs run, and a rack and a half goes off.

What happened is read from the BMCs' own files, which know nothing of haptera.
"""

import fcntl
import itertools
import json
import os
import signal
from contextlib import ExitStack, contextmanager

import pytest

from tests.cli.rig import client_of, lab, typed
from tests.lab.rig import wait_for

pytestmark = [pytest.mark.net, pytest.mark.campaign, pytest.mark.timeout(480)]

SITE = """\
cluster: hundred
nodes:
  rack[01-10]n[01-10]:
    {platform: labnode, rack: "r{1}", address: "127.{x}.1.{index}", bmc: "127.{x}.2.{index}:4280"}
services: {idle: {command: "sleep 100000"}}
desired:
"""
UP = """\
  rack[01-10]n[01-10]: {power: on, agent: up}
  idle@rack[01-10]n[01-10]: {run: running}
"""
# Of these 15, ten share a rack.
DOWN = """\
  rack[03-10]n[01-10],rack02n[06-10]: {power: on, agent: up}
  rack01n[01-10],rack02n[01-05]: {power: off}
"""
NODES = [f"rack{rack:02}n{n:02}" for rack in range(1, 11) for n in range(1, 11)]
BUSY = ("rack01n03", "rack02n04", "rack07n07")
OFF = [name for name in NODES if name < "rack02n06"]
# By default: a quarter of a rack of ten, 5 % of 100 nodes.
RACK_MAX, PARENT_MAX = 2, 5


def rows(folder, node):
    file = folder / ".haptera" / "nodes" / node / "bmc" / "commands.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()]


def commands(folder, node, power):
    return [row for row in rows(folder, node) if "command" in row and row.get("power") == power]


def conditions(folder, kind):
    """How all of a kind stand, by node; nothing while the parent cannot be asked."""
    code, out, _ = typed("get", kind, "-o", "json", folder=folder, client=client_of(folder))
    return {one["node"]: one for one in json.loads(out)} if code == 0 else {}


def settled(folder):
    nodes, services = conditions(folder, "node"), conditions(folder, "service")
    every = [*nodes.values(), *services.values()]
    return len(every) == 200 and all(one["condition"] == "converged" for one in every)


def wait_long(find):
    """As `wait_for`, for what takes a hundred nodes."""
    for _ in range(5):
        try:
            return wait_for(find)
        except AssertionError:
            continue
    return wait_for(find)


@contextmanager
def job(folder, node):
    """A job as a shell's `flock -s` would hold the node's gate."""
    gate = folder / ".haptera" / "nodes" / node / "run" / "jobs" / "open" / "gate"
    with gate.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield


def under_way_most(folder, nodes):
    """How many of these were being switched off at one moment, most: from command to effect."""
    ends = []
    for node in nodes:
        taken = {row["command"]: row["at_ns"] for row in commands(folder, node, "off")}
        done = {row["command"]: row["at_ns"] for row in rows(folder, node) if "effect" in row}
        ends += [(at, 1) for at in taken.values()]
        ends += [(done[one], -1) for one in taken]
    return max(itertools.accumulate(step for _, step in sorted(ends)), default=0)


def test_a_hundred_nodes_come_up_keep_their_jobs_and_go_off_within_their_budgets(tmp_path):
    (tmp_path / "site.yaml").write_text(SITE + UP)
    with lab(tmp_path), ExitStack() as jobs:
        wait_long(lambda: settled(tmp_path) or None)
        assert [len(commands(tmp_path, node, "on")) for node in NODES] == [1] * 100
        for node in BUSY:
            jobs.enter_context(job(tmp_path, node))
        before = [commands(tmp_path, node, "on") for node in NODES]

        pid_file = tmp_path / ".haptera" / "parent" / "parent.pid"
        os.kill(old := int(pid_file.read_text()), signal.SIGKILL)
        wait_for(lambda: pid_file.exists() and int(pid_file.read_text()) != old)
        wait_long(lambda: settled(tmp_path) or None)
        assert [commands(tmp_path, node, "on") for node in NODES] == before
        assert [commands(tmp_path, node, "off") for node in NODES] == [[]] * 100

        (tmp_path / "off.yaml").write_text(SITE + DOWN)
        code, _, errors = typed("apply", "off.yaml", folder=tmp_path, client=client_of(tmp_path))
        assert (code, errors) == (0, "")
        free = [node for node in OFF if node not in BUSY]
        wait_long(lambda: all(commands(tmp_path, node, "off") for node in free) or None)
        assert [commands(tmp_path, node, "off") for node in BUSY] == [[]] * len(BUSY)
        why = wait_for(
            lambda: [
                text
                for node in BUSY[:2]
                if (text := conditions(tmp_path, "node").get(node, {}).get("why"))
                and "does not permit it: jobs: 1 job runs" in text
            ]
        )
        assert why

        jobs.close()
        wait_long(lambda: all(commands(tmp_path, node, "off") for node in OFF) or None)
        wait_long(
            lambda: (
                all(
                    one["condition"] == "converged" for one in conditions(tmp_path, "node").values()
                )
                or None
            )
        )
        others = [node for node in NODES if node not in OFF]
        assert [commands(tmp_path, node, "off") for node in others] == [[]] * len(others)
        assert [len(commands(tmp_path, node, "off")) for node in OFF] == [1] * len(OFF)
        assert under_way_most(tmp_path, OFF) <= PARENT_MAX
        assert under_way_most(tmp_path, NODES[:10]) <= RACK_MAX
