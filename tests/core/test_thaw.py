"""What is left of a freeze: nothing that was thawed, and all else that it held."""

import pytest

from haptera.core.thaw import Thaw, thaw
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.model.selector import Selector, parse_selector

NODES = [f"r{rack}n{number}" for rack in (1, 2) for number in (1, 2, 3)]
WEBS = [EntityId("service", "web", node) for node in NODES]
DBS = [EntityId("service", "db", node) for node in NODES[:2]]
APART = EntityId("module", "labnode", None)
ENTITIES = [*map(node_id, NODES), *WEBS, *DBS, APART]


@pytest.mark.parametrize(
    ("held", "by", "left"),
    [
        ("r1n[1-3]", "r1n2", Thaw("r1n2", "r1n[1,3]")),
        ("r1n[1-3]", "r1n*", Thaw("r1n[1-3]", None)),
        ("r1*", "r1n1", Thaw("r1n1", "r1n[2-3]")),
        ("*", "r1n[1-3]", Thaw("r1n[1-3]", "r2n[1-3]")),
        ("*", "*", Thaw("*", None)),
        ("gone[1-9]", "*", Thaw("gone[1-9]", None)),
        ("gone[1-9]", "gone[1-9]", Thaw("gone[1-9]", None)),
        ("gone[1-3]", "gone2", Thaw("gone2", "gone[1,3]")),
        ("r1n1", "r2n1", None),
        ("node:r1n[1-2]", "r1n1", Thaw("node:r1n1", "node:r1n2")),
        ("node:r1n[1-2]", "node:r1n1", Thaw("node:r1n1", "node:r1n2")),
        ("node:r1n1", "service:web@r1n1", None),
        ("service:web", "r1*", Thaw("service:web@r1n[1-3]", "service:web@r2n[1-3]")),
        ("service:db,web@r1n1", "service:db", Thaw("service:db@r1n1", "service:web@r1n1")),
        (
            "service:*@r1n[1-2]",
            "service:web@r*",
            Thaw("service:web@r1n[1-2]", "service:db@r1n[1-2]"),
        ),
        ("module:labnode", "r1n1", None),
    ],
)
def test_what_is_left_is_written_as_short_as_it_was(held: str, by: str, left: Thaw | None) -> None:
    assert thaw(parse_selector(held), parse_selector(by), ENTITIES) == left


@pytest.mark.parametrize(
    ("held", "by", "what"),
    [
        (
            "r1n1",
            "service:web@r1n1",
            "what is left of r1n1 without service:web@r1n1 is not one selector",
        ),
        (
            "service:*@r1*",
            "service:web@r1n1",
            "what is left of service:*@r1* without service:web@r1n1 is not one selector",
        ),
    ],
)
def test_what_would_need_two_selectors_is_refused_with_a_way_out(
    held: str, by: str, what: str
) -> None:
    with pytest.raises(HapteraError) as raised:
        thaw(parse_selector(held), parse_selector(by), ENTITIES)

    assert raised.value.what == what
    assert raised.value.do == f"thaw {held}, then freeze what should stay so"


def test_what_is_left_of_too_many_names_is_refused() -> None:
    scattered = [node_id(f"n{number * 7919}") for number in range(200)]
    with pytest.raises(HapteraError) as raised:
        thaw(parse_selector("n*"), parse_selector("n0"), scattered)

    assert raised.value.what == "what is left of n* takes over 512 bytes"


SOME_NODES = ["r1n1", "r1n[1-3]", "r[1-2]n[2-3]", "r2*", "*n1", "*", "r9n9"]
SOME_NAMES = ["web", "db", "web,db", "w*", "*"]
SELECTORS = [
    parse_selector(text)
    for text in (
        *SOME_NODES,
        *(f"node:{nodes}" for nodes in SOME_NODES),
        *(f"service:{names}" for names in SOME_NAMES),
        *(f"service:{names}@{nodes}" for names in SOME_NAMES for nodes in SOME_NODES),
        "module:labnode",
    )
]


def selected(selector: Selector) -> set[EntityId]:
    return {one for one in ENTITIES if one in selector}


@pytest.mark.parametrize("held", SELECTORS, ids=str)
def test_nothing_thawed_stays_frozen_and_nothing_else_on_a_node_is_thawed(held: Selector) -> None:
    for by in SELECTORS:
        before = selected(held)
        try:
            left = thaw(held, by, ENTITIES)
        except HapteraError:
            assert before & selected(by)
            continue
        after = before
        if left is not None:
            after = set() if left.rest is None else selected(parse_selector(left.rest))
            assert selected(parse_selector(left.thawed)) - {APART} == before - after - {APART}
        assert after <= before
        assert not after & selected(by)
        assert before - after - selected(by) <= {APART}
