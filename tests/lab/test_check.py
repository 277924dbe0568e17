"""The quickstart's site file and its check, tried on the plainest cluster that there is."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from haptera.lab.layout import LabNode
from haptera.lab.settings import lab_nodes
from haptera.site.model.site import load_site
from tests.lab.rig import ROOT, WAIT_S_MAX
from tests.network import draw_cluster

QUICKSTART = ROOT / "examples" / "quickstart"

START = """
import asyncio, sys
from pathlib import Path
from haptera.site.model.site import load_site
from haptera.lab.layout import LabConfig, Places, octet, open_cluster
from haptera.lab.settings import lab_nodes
from haptera.lab.supervisor import run_lab

places = Places(Path(sys.argv[1]))
cluster = open_cluster(places)
constants = {"x": str(octet(cluster)), "python": sys.executable, "site": "."}
site = load_site(Path(sys.argv[2]), constants)
attributes = {e.entity.name: e.attributes for e in site.entities if e.entity.kind == "node"}
nodes = lab_nodes(attributes, site.lab)
module = "tests.lab.standin_cluster"
asyncio.run(run_lab(LabConfig(
    places.directory, cluster, nodes, f"{module}:parent", f"{module}:{sys.argv[3]}"
)))
"""


def test_the_quickstart_has_16_nodes_in_4_racks_and_a_service_on_each() -> None:
    site = load_site(
        QUICKSTART / "site.yaml", {"x": "9", "python": "/usr/bin/python3", "site": "/a b"}
    )
    attributes = {e.entity.name: e.attributes for e in site.entities if e.entity.kind == "node"}
    nodes = {node.name: node for node in lab_nodes(attributes, site.lab)}
    assert len(nodes) == 16
    assert nodes["rack1n1"] == LabNode("rack1n1", "127.9.1.1", "127.9.2.1:4280", 300, 0)
    assert nodes["rack4n4"] == LabNode("rack4n4", "127.9.1.16", "127.9.2.16:4280", 300, 3600)
    assert [n.name for n in nodes.values() if n.refuse is not None] == ["rack3n2"]
    services = [e.desired for e in site.entities if e.entity.kind == "service"]
    assert (
        services
        == [{"run": "running", "command": '"/usr/bin/python3" "/a b/web.py"', "port": 8080}] * 16
    )


@pytest.mark.net
@pytest.mark.slow
@pytest.mark.skipif(
    None in map(shutil.which, ("curl", "ss")), reason="the check needs curl and ss (iproute2)"
)
@pytest.mark.parametrize(
    ("agent", "status", "said"),
    [
        pytest.param("agent", 0, "all held", marks=pytest.mark.long),
        ("careless_agent", 1, "check: rack2n3: its service died with its agent"),
    ],
)
def test_the_check_tells_whether_a_cluster_heals(
    tmp_path: Path, agent: str, status: int, said: str
) -> None:
    draw_cluster(tmp_path)
    lab = subprocess.Popen(
        [sys.executable, "-c", START, str(tmp_path), str(QUICKSTART / "site.yaml"), agent],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        check = subprocess.run(
            ["bash", str(QUICKSTART / "check.sh"), str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
    finally:
        lab.send_signal(signal.SIGINT)
        lab.wait(WAIT_S_MAX)
    printed = check.stdout + check.stderr
    last = printed.splitlines()[-1] if status == 0 else said
    # Behind what is wrong stands where to look.
    assert (check.returncode, last, said in printed.splitlines()) == (status, said, True), printed
