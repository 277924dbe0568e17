"""Selectors: which entities each form means, and what is refused."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.model.selector import parse_selector

N1, N2 = node_id("rack1n1"), node_id("rack1n2")
WEB1, WEB2 = EntityId("service", "web", "rack1n1"), EntityId("service", "web", "rack1n2")
MINE, OURS = EntityId("module", "service", "rack1n1"), EntityId("module", "labnode", None)
EVERYTHING = [N1, N2, WEB1, WEB2, MINE, OURS]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("*", EVERYTHING),
        ("rack1n1", [N1, WEB1, MINE]),
        ("rack1n[1-2]", [N1, N2, WEB1, WEB2, MINE]),
        ("rack1*", [N1, N2, WEB1, WEB2, MINE]),
        ("*n2", [N2, WEB2]),
        ("r*1n*2", [N2, WEB2]),
        ("*rack1n1*", [N1, WEB1, MINE]),
        ("r*k*k1n1", []),
        ("*1*1*1*", []),
        ("node:rack1n1", [N1]),
        ("node:*", [N1, N2]),
        ("service:web", [WEB1, WEB2]),
        ("service:*@rack1n2", [WEB2]),
        ("module:labnode", [OURS]),
        ("module:*@*", [MINE, OURS]),
        ("rack2n1", []),
    ],
)
def test_a_selector_means_these(text: str, meant: list[EntityId]) -> None:
    selector = parse_selector(text)
    assert [one for one in EVERYTHING if one in selector] == meant


@pytest.mark.parametrize(
    "text", ["", "rack[1", ":web", "service:", "node:n1@n2", "n[1-2]*", "a b*", "x" * 600, "k:a@"]
)
def test_a_text_that_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(HapteraError):
        parse_selector(text)


@given(st.text("ab*", min_size=1, max_size=8), st.text("ab", min_size=1, max_size=8))
def test_a_star_stands_for_any_characters(pattern: str, name: str) -> None:
    assume(pattern.strip("*") and "*" in pattern)
    meant = node_id(name) in parse_selector(f"node:{pattern}")
    assert meant == (re.fullmatch(pattern.replace("*", ".*"), name) is not None)


def test_a_pattern_of_many_stars_is_answered_at_once() -> None:
    pattern = parse_selector("node:" + "*a" * 200 + "*b")
    assert node_id("a" * 64) not in pattern
    assert node_id("a" * 64) not in parse_selector("node:" + "*" * 500 + "b")
