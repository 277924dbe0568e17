"""Drawings in Mermaid: every state and edge is there, and no name is taken for more than a text."""

import re

import pytest

from haptera.cli.output.drawing.mermaid import mermaid
from tests.cli.drawing.examples import EXAMPLES

NODE = re.compile(r'    s\d+_\d+\["[^"]*"\](?::::(?:now|goal))?')
EDGE = re.compile(r'    s\d+_\d+ (?:-->|-\.->|==>)\|"[^"]*"\| s\d+_\d+')


def test_a_chain_is_written_with_its_marks() -> None:
    assert (
        mermaid(EXAMPLES["chain"])
        == """\
flowchart TD
  %% problem, platform=ipmi
  %% wanted: agent=up; the chain costs 4
  %% 1. switch_on
  %% 2. look_agent, expecting down
  %% 3. start
  classDef now stroke:#1d4ed8,stroke-width:3px
  classDef goal stroke:#15803d,stroke-width:3px
  subgraph g0["power, agent"]
    s0_0["nothing known"]
    s0_1["now<br>power off<br>agent down?"]:::now
    s0_2["power on<br>agent down?"]:::now
    s0_3["power on<br>agent down"]:::now
    s0_4["goal<br>power on<br>agent up"]:::goal
    s0_0 -.->|"look_power = off · 1"| s0_1
    s0_0 -.->|"look_power = on · 1"| s0_2
    s0_1 ==>|"1. switch_on · 2"| s0_2
    s0_2 -->|"switch_off · 1<br>unless agent=up?"| s0_1
    s0_2 ==>|"2. look_agent = down · 1"| s0_3
    s0_2 -.->|"look_agent = up · 1"| s0_4
    s0_3 -->|"switch_off · 1"| s0_1
    s0_3 ==>|"3. start · 1"| s0_4
    s0_4 -->|"stop · 4"| s0_3
  end
  linkStyle 2 stroke:#1d4ed8
  linkStyle 4 stroke:#1d4ed8
  linkStyle 7 stroke:#1d4ed8
"""
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_state_and_edge_is_one_line_whatever_its_name(name: str) -> None:
    drawing, lines = EXAMPLES[name], mermaid(EXAMPLES[name]).splitlines()
    assert sum(NODE.fullmatch(line) is not None for line in lines) == sum(
        len(graph.states) for graph in drawing.graphs
    )
    assert sum(EDGE.fullmatch(line) is not None for line in lines) == sum(
        len(graph.edges) for graph in drawing.graphs
    )
    assert sum(line.startswith("    ") for line in lines) == sum(
        len(graph.states) + len(graph.edges) for graph in drawing.graphs
    )
