"""R1 where a controller is not told of all at once: a new parent places no replica anew."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from haptera.runtime.processes.control import VIEWS_PER_FRAME
from tests.kills.processes import kill, wait_for
from tests.kills.rig import Lab

pytestmark = [pytest.mark.net, pytest.mark.campaign, pytest.mark.timeout(300)]

NODES = 6
GROUPS = 2 * VIEWS_PER_FRAME // NODES
PARENT_KILLS = 5
WITHIN_S = 120
SITE = """
cluster: many
modules: [jobs, labnode, replica]
nodes:
  n[1-6]: {{platform: labnode, address: "127.{{x}}.1.{{n}}", bmc: "127.{{x}}.2.{{n}}:4280"}}
desired:
  n[1-6]: {{power: on, agent: up}}
"""
GROUP = "  group:g{}: {{{{command: sleep infinity, replicas: 6, leader: none}}}}\n"


class ManyReplicas(Lab):
    """One replica of each of many groups on each of six nodes."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, SITE + "".join(map(GROUP.format, range(GROUPS))))

    def starts(self) -> dict[Path, str]:
        """Of each replica that was ever started, what its keeper wrote of its last process."""
        homes = self.root.glob("nodes/*/run/replicas/*")
        return {one: (one / "state").read_text() for one in homes if (one / "state").exists()}

    def all_run(self) -> bool:
        """Whether the parent knows of each that it runs."""
        with closing(self.api()) as api:
            answer = api.ask("GET", "/v1/summary")
        told = {} if answer is None or answer[0] != 200 else answer[2]["counts"].get("replica", {})
        return bool(told == {"converged": GROUPS * NODES})


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[ManyReplicas]:
    one = ManyReplicas(tmp_path)
    with one.running():
        yield one


def test_r1_a_parent_that_is_killed_places_none_of_many_replicas_anew(lab: ManyReplicas) -> None:
    wait_for("all run", lab.all_run, WITHIN_S)
    before = lab.starts()
    for _ in range(PARENT_KILLS):
        old = lab.parent()
        kill(old)
        wait_for("there is another parent", lambda old=old: lab.parent().pid != old.pid, WITHIN_S)
        wait_for("it knows that all run", lab.all_run, WITHIN_S)

    assert len(before) == GROUPS * NODES
    assert lab.starts() == before
