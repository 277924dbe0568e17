"""On a node, what a service runs reaches neither the key nor the state of its agent."""

import os

import pytest

from tests.cli.rig import client_of, lab, typed
from tests.lab.rig import files_below, wait_for

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(480)]

SITE = """\
cluster: confined
nodes:
  n1: {platform: labnode, address: "127.{x}.1.1", bmc: "127.{x}.2.1:4280"}
services:
  spy: {command: "sh SCRIPT"}
desired:
  n1: {power: on, agent: up}
  spy@n1: {run: running}
modules:
  labnode: {}
  service: {}
  jobs: {}
lab: {delay_ms: 10}
"""
# Its folder is two below the agent's.
SCRIPT = """\
for one in key.pem identity.pem session.json intents.json desired.json uplink.json; do
    head -c 1 ../../$one > /dev/null 2>&1 && echo "read $one"
    echo x 2> /dev/null >> ../../$one && echo "wrote $one"
done
# What it does elsewhere is not in the way: above the agent's folder, too.
touch ../../../made && echo "made beside"
umount ../.. 2> /dev/null && echo "shown again"
seen=/proc/$(cat ../../../agent.pid)/root$PWD/../..
head -c 1 $seen/key.pem > /dev/null 2>&1 && echo "read by proc"
mknod disk b 7 0 2> /dev/null && echo "made a disk"
grep CapBnd /proc/self/status
echo done
sleep 600
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a plain user's services may do what the user may")
def test_what_a_service_runs_reaches_neither_key_nor_state_of_its_agent(tmp_path):
    (tmp_path / "spy.sh").write_text(SCRIPT)
    (tmp_path / "site.yaml").write_text(SITE.replace("SCRIPT", str(tmp_path / "spy.sh")))

    def told():
        words = ("logs", "service:spy@n1")
        return typed(*words, folder=tmp_path, client=client_of(tmp_path))[1].splitlines()

    with lab(tmp_path):
        wait_for(lambda: "done" in told())
        lines = told()
        homes = files_below(tmp_path / ".haptera" / "nodes")
        (key,) = (one for one in homes if one.name == "key.pem")
        assert key.read_bytes().startswith(b"-----BEGIN")
    assert [one for one in lines if not one.startswith("CapBnd")] == ["made beside", "done"]
    bounding = int(next(one for one in lines if one.startswith("CapBnd")).split()[1], 16)
    assert not bounding >> 21 & 1, "it may mount, and so read any disk"
