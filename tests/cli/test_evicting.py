"""A node that is put out of a real cluster, and one that is taken out of the site file."""

import json

import pytest

from tests.cli.rig import lab, typed
from tests.lab.rig import wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow]

SITE = """\
cluster: small
nodes:
  n[1-2]: {platform: labnode, address: "127.{x}.1.{n}", bmc: "127.{x}.2.{n}:4280"}
services:
  idle: {command: '"{python}" -c "import time; time.sleep(1000)"'}
desired:
  n[1-2]: {power: on, agent: up}
  idle@n[1-2]: {run: running}
lab: {delay_ms: 10}
"""
PAUSED = "node n2 is not declared: its session pauses"


def test_a_node_that_is_put_out_is_heard_no_more_and_the_others_are(tmp_path):
    (tmp_path / "site.yaml").write_text(SITE)
    with lab(tmp_path):
        wait_for(lambda: typed("status", "--check", folder=tmp_path)[0] == 0)
        words = "enrol  out-of-band, its token came through its BMC, hypervisor or cloud\n"
        assert words in typed("why", "-v", "node:n1", folder=tmp_path)[1]
        assert levels(tmp_path) == {"n1": "out-of-band", "n2": "out-of-band"}
        told = "n1 is evicted; boot it again to re-admit it\n"
        assert typed("evict", "n1", folder=tmp_path) == (0, told, "")
        code, _, errors = typed("logs", "service:idle@n1", folder=tmp_path)
        assert (code, "n1 has not enrolled yet" in errors) == (1, True)
        wait_for(lambda: typed("status", "--check", "n1", folder=tmp_path)[0] != 0)
        assert typed("status", "--check", "n2", folder=tmp_path)[0] == 0
        assert levels(tmp_path) == {"n1": None, "n2": "out-of-band"}
        assert "evict n1" in typed("history", "--audit", folder=tmp_path)[1]


def levels(folder):
    """At which level each node has enrolled, as anybody may read who may read nodes."""
    nodes = json.loads(typed("get", "node", "-o", "json", folder=folder)[1])
    return {one["name"]: one["enrolment"] for one in nodes}


@pytest.mark.long
def test_a_node_that_is_declared_again_after_long_is_back_without_a_boot(tmp_path):
    site, less = tmp_path / "site.yaml", tmp_path / "less.yaml"
    site.write_text(SITE)
    less.write_text(SITE.replace("n[1-2]: {p", "n1: {p").replace("idle@n[1-2]", "idle@n1"))
    commands = tmp_path / ".haptera" / "nodes" / "n2" / "bmc" / "commands.jsonl"
    log = tmp_path / ".haptera" / "parent" / "serve.log"
    with lab(tmp_path):
        wait_for(lambda: typed("status", "--check", folder=tmp_path)[0] == 0)
        before = switched(commands)
        plan = typed("plan", "less.yaml", folder=tmp_path)[1]
        digest = plan.split()[-1]
        assert typed("apply", "less.yaml", "--digest", digest, folder=tmp_path)[0] == 0
        while PAUSED not in log.read_text():
            typed("wait", "n1", "--for", "gone", "--within", "10s", folder=tmp_path)
        assert typed("apply", "site.yaml", folder=tmp_path)[0] == 0
        wait_for(lambda: typed("status", "--check", "n2", folder=tmp_path)[0] == 0)
        assert switched(commands) == before


def switched(commands):
    """What a BMC was told, but for being asked."""
    return [line for line in commands.read_text().splitlines() if '"read"' not in line]
