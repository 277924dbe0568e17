"""An agent that dies soon after each start: for others it is down, until it lives on."""

from contextlib import closing
from pathlib import Path

import pytest

from haptera.daemon.respawn import SHORT_LIVES, SHORT_MAX
from tests.kills.processes import kill, wait_for
from tests.kills.rig import Lab

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]

WITHIN_S = 90
SITE = """
cluster: dying
nodes:
  n1: {{platform: labnode, address: "127.{{x}}.1.1", bmc: "127.{{x}}.2.1:4280"}}
desired:
  n1: {{power: on, agent: up}}
"""


def size_bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def test_an_agent_that_dies_again_and_again_is_down_and_later_up_again(tmp_path: Path) -> None:
    lab = Lab(tmp_path, SITE)
    with lab.running(), closing(lab.api()) as api:

        def stands() -> tuple[bool, str]:
            answer = api.ask("GET", "/v1/entities/node:n1")
            assert answer is not None
            seen = answer[2]["observed"].get("agent")
            return seen is not None and seen["known"], answer[2]["condition"]

        wait_for("it is heard", lambda: stands() == (True, "converged"), WITHIN_S)
        counted = lab.root / "nodes/n1/run" / SHORT_LIVES
        wait_for("it has lived on", lambda: not counted.exists(), WITHIN_S)
        for deaths in range(SHORT_MAX + 1):
            kill(lab.agent("n1"))
            wait_for("it lives", lambda: size_bytes(counted) > deaths, WITHIN_S)  # noqa: B023
        living = lab.agent("n1")
        wait_for("it is down for its parent", lambda: not stands()[0], WITHIN_S)
        assert stands()[1] != "converged"
        assert lab.agent("n1").pid == living.pid, "it is there, and quiet"
        said = (lab.root / "nodes/n1/agent.log").read_text()
        assert "processes ended within" in said
        wait_for("it is heard again", lambda: stands() == (True, "converged"), WITHIN_S)
