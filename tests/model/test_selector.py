"""Selectors: which entities each form means, and what is refused."""

import pytest

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
