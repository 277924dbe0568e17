"""Drawings in words: what is said above a graph and at its arrows."""

from typing import Any

import pytest

from haptera.cli.output.drawing import words
from haptera.model.answers.graph import GraphView
from tests.cli.drawing.examples import EXAMPLES, drawn
from tests.planner.test_original_tables import LAYERCAKE

SWITCH = ["unknown", "off", "on"]


def look(name: str, at: str, *outcomes: str, **requires: str) -> dict[str, Any]:
    return {"name": name, "at": at, "outcomes": list(outcomes), "requires": requires}


def graph_of(*looks: dict[str, Any]) -> GraphView:
    """Of v and w; nothing looks at p or changes it, so it is not in the graph."""
    variables = {"v": SWITCH, "w": SWITCH, "p": ["unknown", "1", "2"]}
    (graph,) = drawn({"variables": variables, "looks": looks}).graphs
    return graph


@pytest.mark.parametrize(
    ("looks", "said"),
    [
        ([look("at_v", "v", "off", "on"), look("at_w", "w", "off", v="on")], []),
        (
            [look("at_v", "v", "off", p="1"), look("at_w", "w", "off", p="1")],
            ["v, w: known only while p=1"],
        ),
        (
            [look("one", "v", "off", p="1"), look("two", "v", "on", p="2")],
            ["v: known by one only while p=1", "v: known by two only while p=2"],
        ),
        (
            [look("one", "v", "off", p="1"), look("two", "v", "on")],
            ["v: known by one only while p=1", "v: known by two"],
        ),
    ],
)
def test_what_knowing_a_variable_rests_on_is_said_above(looks, said) -> None:
    assert list(words.above(graph_of(*looks))) == said


def test_what_all_steps_need_is_said_above_and_not_at_each() -> None:
    graph = next(one for one in drawn(LAYERCAKE).graphs if "set" in one.variables)
    assert list(words.above(graph)) == [
        "set: known only while run=sync and phys=on",
        "all steps while run=sync",
        "all steps unless busy=busy",
    ]
    assert [list(words.notes(graph, edge)) for edge in graph.edges] == [[]] * 11


def test_what_differs_from_step_to_step_is_said_at_each() -> None:
    graph = next(one for one in drawn(LAYERCAKE).graphs if "run" in one.variables)
    said = {words.part(edge): list(words.notes(graph, edge)) for edge in graph.edges}
    assert {part: notes for part, notes in said.items() if notes} == {
        "pxe.WAITtoINIT · 1": ["while phys=on", "with pxe wait → init"],
        "sse.INITtoSYNC · 1": ["while phys=on"],
        "imageapi.SYNCtoINIT · 1": ["while set=idle", "unless busy=busy"],
    }


def test_the_shorter_of_what_is_remembered_and_what_is_not_is_said() -> None:
    steps = [
        {"name": "a", "changes": {"v": ["off", "on"]}, "excludes": {"w": "on"}},
        {"name": "b", "changes": {"v": ["on", "off"]}, "excludes": {"w": ["off", "on"]}},
    ]
    looks = [look("at_v", "v", "off", "on"), look("at_w", "w", "off", "on")]
    (graph,) = drawn(
        {"variables": {"v": SWITCH, "w": SWITCH}, "looks": looks, "steps": steps}
    ).graphs
    said = {words.part(edge): list(words.notes(graph, edge)) for edge in graph.edges if edge.memory}
    assert said == {
        "at_v = off · 1": [],
        "at_v = on · 1": [],
        "at_w = off · 1": [],
        "at_w = on · 1": [],
        "a · 1": ["unless w=on?"],
        "b · 1": ["if w=unknown"],
    }


def test_a_state_in_which_nothing_is_known_says_so_or_what_is_remembered() -> None:
    graphs = {name: one for one in EXAMPLES["layercake"].graphs for name in one.variables}
    course = EXAMPLES["layercake"].course
    assert [words.memories(one, course, 0) for one in graphs.values()] == [["nothing known"]] * 5
    assert words.memories(graphs["phys"], course, 1) == []

    (graph,) = (chain := EXAMPLES["chain"]).graphs
    assert [words.memories(graph, chain.course, place) for place in range(3)] == [
        ["nothing known"],
        ["agent down?"],
        ["agent down?"],
    ]
    assert words.memories(graph, None, 1) == []


def test_why_there_is_no_chain_is_said_above() -> None:
    drawing = EXAMPLES["no chain"]
    assert drawing.course is not None
    assert words.heading(drawing) == [
        "problem, platform=ipmi",
        "wanted: agent=up",
        words.cut(f"no chain: {drawing.course.reason}"),
    ]


def test_names_are_cut_where_they_are_long_and_shown_as_they_can_be() -> None:
    assert words.cut("x" * 97) == "x" * 95 + "…"
    assert words.cut("a\x1b[31m\nb") == "a [31m b"
