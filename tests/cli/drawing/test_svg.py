"""Drawings as SVG: well formed whatever the names, and all of a drawing is in it."""

from xml.etree import ElementTree

import pytest
from hypothesis import given

from haptera.cli.output.drawing import words
from haptera.cli.output.drawing.svg import svg
from haptera.cli.output.drawing.text import PLAIN, line
from haptera.model.graph import DrawingView
from tests.cli.drawing.examples import EXAMPLES, OFF, drawn
from tests.planner.strategies import Question, questions
from tests.planner.test_graph import drawn as drawn_of
from tests.planner.test_worked_examples import PROBLEM

SPACE = "{http://www.w3.org/2000/svg}"


def read(drawing: DrawingView) -> ElementTree.Element:
    return ElementTree.fromstring(svg(drawing).encode())


def lines(root: ElementTree.Element) -> list[str]:
    return ["".join(one.itertext()) for one in root.iter(f"{SPACE}text")]


def of_class(root: ElementTree.Element, tag: str, kind: str) -> list[ElementTree.Element]:
    found = root.iter(f"{SPACE}{tag}")
    return [one for one in found if set(kind.split()) <= set(one.get("class", "").split())]


def hold(drawing: DrawingView) -> None:
    """All states and all that leads from one to another are there, with what is to be said."""
    root = read(drawing)
    told = lines(root)
    pairs = {
        (number, edge.source, edge.target, edge.does, edge.disruptive, bool(edge.links))
        for number, graph in enumerate(drawing.graphs)
        for edge in graph.edges
        if edge.source != edge.target
    }
    hoped = [edge for graph in drawing.graphs for edge in graph.edges if edge.links]
    assert len(of_class(root, "rect", "box")) == sum(len(one.states) for one in drawing.graphs)
    assert len(of_class(root, "path", "tip")) == len(pairs)
    assert len(of_class(root, "rect", "box now")) == sum(bool(one.path) for one in drawing.graphs)
    assert len(of_class(root, "rect", "inner")) == sum(len(one.goal) for one in drawing.graphs)
    for graph in drawing.graphs:
        for edge in graph.edges:
            course = "".join(f"{number}. " for number in edge.links)
            back = words.BACK if edge.source == edge.target else ""
            assert f"{back}{course}{words.part(edge)}" in told
            assert set(words.notes(graph, edge)) <= set(told)
        assert set(words.above(graph)) <= set(told)
    assert bool(of_class(root, "path", "tip chain")) == any(
        edge.source != edge.target for edge in hoped
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_all_of_it_is_drawn(name: str) -> None:
    hold(EXAMPLES[name])


@given(questions())
def test_all_of_any_class_is_drawn(question: Question) -> None:
    hold(drawn_of(question))


def test_the_same_drawing_is_the_same_text_however_its_parts_are_ordered() -> None:
    turned = {name: PROBLEM[name][::-1] for name in ("looks", "steps")}
    assert svg(drawn(PROBLEM, **OFF)) == svg(drawn(PROBLEM, **turned, **OFF))


def test_who_cannot_see_it_is_told_what_it_shows() -> None:
    root = read(EXAMPLES["chain"])
    names = root.get("aria-labelledby", "").split()
    told = {one.get("id"): one.text for one in root if one.get("id") is not None}
    assert root.get("role") == "img"
    assert [told[name] for name in names] == [
        "problem, platform=ipmi",
        "power, agent: 5 states, 9 edges. wanted: agent=up; the chain costs 4."
        " 1. switch_on. 2. look_agent, expecting down. 3. start.",
    ]


def test_what_changes_nothing_that_is_known_stands_in_its_box() -> None:
    told = lines(read(EXAMPLES["back to itself"]))
    assert sorted(one for one in told if "reboot" in one) == ["reboot · 1", "↺ reboot · 1"]
    assert told.count("leaves agent=up?") == 2


def test_colours_are_given_for_light_pages_and_for_dark_ones() -> None:
    (style,) = read(EXAMPLES["class"]).iter(f"{SPACE}style")
    light, dark = str(style.text).split("@media (prefers-color-scheme:dark)")
    assert ".paper{fill:#ffffff" in light
    assert ".paper{fill:#14181d" in dark


def test_letters_that_are_two_wide_take_the_room_of_two() -> None:
    assert line("名前").width == line("abcd").width
    assert line("e\u0301").width == line("e").width
    assert line("abc").height > PLAIN
