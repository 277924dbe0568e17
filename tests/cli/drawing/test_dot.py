"""Drawings in DOT: what Graphviz reads is what was drawn."""

import json
import shutil
import subprocess

import pytest

from haptera.cli.output.drawing.dot import dot
from tests.cli.drawing.examples import EXAMPLES

DOT = shutil.which("dot")


def test_a_chain_is_written_with_its_marks() -> None:
    assert (
        dot(EXAMPLES["chain"])
        == """\
digraph "problem, platform=ipmi" {
  graph [label="problem, platform=ipmi\\lwanted: agent=up; the chain costs 4\\l1. switch_on\\l2. \
look_agent, expecting down\\l3. start\\l", labelloc="t", fontname="monospace", fontsize="11"];
  node [shape="box", style="rounded", fontname="monospace", fontsize="11"];
  edge [fontname="monospace", fontsize="11"];
  subgraph cluster0 {
    graph [label="power, agent\\l", labeljust="l"];
    s0_0 [label="nothing known\\l"];
    s0_1 [label="now\\lpower off\\lagent down?\\l", color="#1d4ed8", penwidth="2"];
    s0_2 [label="power on\\lagent down?\\l", color="#1d4ed8", penwidth="2"];
    s0_3 [label="power on\\lagent down\\l", color="#1d4ed8", penwidth="2"];
    s0_4 [label="goal\\lpower on\\lagent up\\l", color="#15803d", penwidth="2", peripheries="2"];
    s0_0 -> s0_1 [label="look_power = off · 1\\l", style="dashed"];
    s0_0 -> s0_2 [label="look_power = on · 1\\l", style="dashed"];
    s0_1 -> s0_2 [label="1. switch_on · 2\\l", color="#1d4ed8", penwidth="2.5"];
    s0_2 -> s0_1 [label="switch_off · 1\\lunless agent=up?\\l"];
    s0_2 -> s0_3 [label="2. look_agent = down · 1\\l", style="dashed", color="#1d4ed8", \
penwidth="2.5"];
    s0_2 -> s0_4 [label="look_agent = up · 1\\l", style="dashed"];
    s0_3 -> s0_1 [label="switch_off · 1\\l"];
    s0_3 -> s0_4 [label="3. start · 1\\l", color="#1d4ed8", penwidth="2.5"];
    s0_4 -> s0_3 [label="stop · 4\\l"];
  }
}
"""
    )


@pytest.mark.skipif(DOT is None, reason="there is no dot: Graphviz is not installed")
@pytest.mark.parametrize("name", EXAMPLES)
def test_graphviz_reads_all_of_it(name: str) -> None:
    drawing = EXAMPLES[name]
    done = subprocess.run(
        [str(DOT), "-Tdot_json"], input=dot(drawing).encode(), capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    read = json.loads(done.stdout)
    clusters = [one for one in read.get("objects", ()) if one["name"].startswith("cluster")]
    assert len(clusters) == len(drawing.graphs)
    nodes = len(read.get("objects", ())) - len(clusters)
    assert nodes == sum(len(graph.states) for graph in drawing.graphs)
    assert len(read.get("edges", ())) == sum(len(graph.edges) for graph in drawing.graphs)
