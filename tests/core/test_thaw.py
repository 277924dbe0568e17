"""What is left of a freeze: nothing that was thawed, and all else that it held."""

import pytest

from haptera.core.desired.thaw import Thaw, thaw
from haptera.core.state.selecting import Declared
from haptera.kinds.rules.rule import OF_BYTES_MAX
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.planner.domain.pieces import at_once
from haptera.selectors.selector import Selector, parse_selector

NODES = [f"r{rack}n{number}" for rack in (1, 2) for number in (1, 2, 3)]
WEBS = [EntityId("service", "web", node) for node in NODES]
DBS = [EntityId("service", "db", node) for node in NODES[:2]]
APART = EntityId("module", "labnode", None)
ENTITIES = {
    **{node_id(node): {"rack": node[:2], "groups": "a, b"} for node in NODES},
    **{one: {} for one in [*WEBS, *DBS, APART]},
}


@pytest.mark.parametrize(
    ("held", "by", "left"),
    [
        ("r1n[1-3]", "r1n2", Thaw("r1n2", "r1n[1,3]")),
        ("r1n[1-3]", "r1n*", Thaw("r1n[1-3]", None)),
        ("r1n[1-9]!r1n3", "r1n[5-9]", Thaw("r1n[5-9]", "r1n[1-2,4]")),
        ("*", "*", Thaw("*", None)),
        ("gone[1-9]", "*", Thaw("gone[1-9]", None)),
        ("gone[1-9]", "gone[1-9]", Thaw("gone[1-9]", None)),
        ("gone[1-3]", "gone2", Thaw("gone2", "gone[1,3]")),
        ("r1n1", "r2n1", None),
        ("node:r1n[1-2]", "r1n1", Thaw("node:r1n1", "node:r1n2")),
        ("node:r1n[1-2]", "node:r1n1", Thaw("node:r1n1", "node:r1n2")),
        ("node:r1n1", "service:web@r1n1", None),
        ("service:db,web@r1n1", "service:db", Thaw("service:db@r1n1", "service:web@r1n1")),
        ("module:labnode", "r1n1", None),
    ],
)
def test_what_is_left_of_names_is_written_by_name(held: str, by: str, left: Thaw | None) -> None:
    assert at_once(thaw(parse_selector(held), parse_selector(by), ENTITIES)) == left


@pytest.mark.parametrize(
    ("held", "by", "rest"),
    [
        ("r1*", "r1n1", "r1* and not r1n1"),
        ("r1* and not r1n1", "r1n2", "r1* and not r1n1 and not r1n2"),
        ("*", "r1n[1-3]", "* and not r1n[1-3]"),
        ("service:web", "r1*", "service:web and not r1*"),
        ("r1n1", "service:web@r1n1", "r1n1 and not service:web@r1n1"),
        ("service:*@r1*", "service:web@r1n1", "service:*@r1* and not service:web@r1n1"),
        ("@rack:r1", "r1n1", "@rack:r1 and not r1n1"),
        ("r1n[1-2] or r2n1", "r1n1", "(r1n[1-2] or r2n1) and not r1n1"),
        ("@a", "rack=r1 and node:r1n1", "@a and not (rack=r1 and node:r1n1)"),
    ],
)
def test_what_else_is_left_is_written_as_all_but_what_was_thawed(
    held: str, by: str, rest: str
) -> None:
    left = at_once(thaw(parse_selector(held), parse_selector(by), ENTITIES))

    assert left is not None
    assert left.rest == rest


def test_where_all_of_it_is_thawed_nothing_is_left() -> None:
    assert at_once(thaw(parse_selector("@rack:r1"), parse_selector("r1*"), ENTITIES)) == Thaw(
        "@rack:r1", None
    )
    assert at_once(thaw(parse_selector("@rack:r1"), parse_selector("r2*"), ENTITIES)) is None


def test_what_is_left_takes_no_more_than_a_rule_can() -> None:
    held, by = parse_selector("n[1-999]"), parse_selector("n[1-999/2]")
    left = at_once(thaw(held, by, {}))
    assert left is not None
    assert left.rest == "n[1-999] and not n[1-999/2]"

    one_by_one = parse_selector(",".join(f"n{number}" for number in range(100, 400, 2)))
    with pytest.raises(HapteraError) as raised:
        at_once(thaw(parse_selector("n*"), one_by_one, {node_id("n100"): {}, node_id("n101"): {}}))
    assert raised.value.what == f"what stays frozen of n* is longer than {OF_BYTES_MAX} bytes"
    assert raised.value.do == "thaw n*, then freeze what should stay frozen"


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
        *("@rack:r1", "@b!r1n1", "rack=r2", "node.rack=r2 and not service:web"),
        *("not node:*", "r1* or service:db"),
    )
]


def selected(selector: Selector) -> set[EntityId]:
    declared = {one.name: some for one, some in ENTITIES.items() if one.kind == "node"}
    return {one for one in ENTITIES if selector.means(Declared(one, declared.get))}


@pytest.mark.parametrize("held", SELECTORS, ids=str)
def test_nothing_thawed_stays_frozen_and_nothing_else_is_thawed(held: Selector) -> None:
    for by in SELECTORS:
        before = selected(held)
        left = at_once(thaw(held, by, ENTITIES))
        if left is None:
            assert not before & selected(by)
            continue
        after = set() if left.rest is None else selected(parse_selector(left.rest))
        assert after == before - selected(by) or by.text == "*"
        assert not after & selected(by)
        assert selected(parse_selector(left.thawed)) == before - after
