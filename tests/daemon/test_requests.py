"""What a root accepted reaches the parent that keeps the node, though the root was killed."""

import signal
from pathlib import Path

import pytest

from tests.cli.rig import client_of
from tests.daemon.test_standby import asked, started
from tests.lab.rig import wait_for
from tests.network import NETWORK

ROOT, BELOW = f"{NETWORK}.63.1", f"{NETWORK}.63.2"
SITE = f"""\
cluster: small
nodes:
  m1: {{address: "{BELOW}", has_agent: "never"}}
  n1: {{platform: stubborn, parents: m1}}
desired: {{n1: {{power: on}}}}
modules: {{stubborn: {{place: "stubborn:module", context: parent}}}}
policies: [{{for: n1, attempts: 1, cool_down: 1d}}]
"""
# It refuses to switch a node on, and says how often it did.
STUBBORN = """\
from itertools import count

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.sdk import PARENT, Module

WHERE = {node.platform: "stubborn"}
module = Module("stubborn", connect=lambda target: target, context=PARENT, where=WHERE)
power = module.serves(node.power)
numbers = count(1)


@power.look(outcomes=(Power.OFF, Power.ON), every_s=1, within_s=5)
async def look(target):
    return Power.OFF


@power.step(Power.OFF, Power.ON, within_s=5)
async def switch_on(target):
    raise RuntimeError(f"refusal {next(numbers)}")
"""


def refused(client: Path, number: int) -> bool:
    """Whether a parent knows that the node was not switched on, so often."""
    try:
        _, view = asked(client, "GET", "/v1/entities/node:n1")
    except OSError:
        return False
    return f"refusal {number}" in str(view["error"])


@pytest.mark.net
@pytest.mark.slow
def test_what_a_killed_root_accepted_is_done_by_the_parent_that_keeps_the_node(
    tmp_path: Path,
) -> None:
    root, below = tmp_path / "root", tmp_path / "below"
    for folder in (root, below):
        folder.mkdir()
        (folder / "stubborn.py").write_text(STUBBORN)
    site = root / "site.yaml"
    site.write_text(SITE)
    client, keeper = client_of(root), client_of(below)
    serve = ("serve", "--hello", "3", "--dir", root, "--listen", ROOT, "--site", site)
    follow = ("serve", "--hello", "3", "--dir", below, "--listen", BELOW)
    follow += ("--name", "m1", "--above", client)
    with started(*serve, log=tmp_path / "root.log") as first:
        wait_for(client.exists)
        with started(*follow, log=tmp_path / "below.log") as parent:
            wait_for(lambda: refused(client, 1))
            # It does not hear of the request before the root is gone.
            parent.send_signal(signal.SIGSTOP)
            asked(client, "POST", "/v1/entities/node:n1/retry")
            first.kill()
            first.wait()
            parent.send_signal(signal.SIGCONT)
            with started(*serve, log=tmp_path / "root2.log"):
                wait_for(lambda: refused(keeper, 2))
                wait_for(lambda: refused(client, 2))
