"""2,000 watched nodes of one module, some of them hung, under a real parent."""

import shutil
from pathlib import Path

import pytest

from benchmarks.module_scale import serving, wait_for
from tests.lab.rig import ROOT
from tests.network import NETWORK

pytestmark = [pytest.mark.net, pytest.mark.slow, pytest.mark.timeout(300)]

ADDRESS = f"{NETWORK}.61.1"
HEALTHY, HUNG = 2_000, 200
SITE = f"""\
cluster: crowd
nodes:
  "n[0001-{HEALTHY}]": {{bmc: "{{name}}"}}
  "h[001-{HUNG}]": {{rack: hung, bmc: "{{h}}"}}
desired:
  "n[0001-{HEALTHY}],h[001-{HUNG}]": {{power: on}}
modules:
  crowd: {{place: "crowd:module", context: parent}}
"""


def test_all_healthy_nodes_come_to_be_as_desired_though_others_hang(tmp_path: Path) -> None:
    shutil.copy(ROOT / "benchmarks" / "crowd.py", tmp_path)
    (tmp_path / "site.yaml").write_text(SITE)
    with serving(tmp_path, ADDRESS) as parent:
        wait_for(lambda: parent.counts().get("converged", 0) >= HEALTHY)
        assert parent.counts()["converged"] == HEALTHY
    (steps,) = tmp_path.rglob("steps")
    assert sorted(steps.read_text().split()) == [f"n{one:04}" for one in range(1, HEALTHY + 1)]
