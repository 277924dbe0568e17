"""That one selector covers another is never said where it does not, and is said where it shows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptera.model.entity import EntityId, node_id
from haptera.selectors.covering import covers
from haptera.selectors.selector import parse_selector

NODES = ("n1", "n2", "m1")
UNIVERSE = (
    *map(node_id, NODES),
    *(EntityId("service", name, node) for name in ("web", "db") for node in NODES),
    EntityId("image", "n1", None),
)
WRITTEN = (
    "n1", "n[1-2]", "n*", "m1", "*", "*1", "n[1-2]!n1", "node:n1", "node:*", "node:n*",
    "service:web", "service:web@n1", "service:web@n*", "service:*@n[1-2]", "service:db,web@m1",
    "image:n1",
)  # fmt: skip
SELECTORS = st.recursive(
    st.sampled_from(WRITTEN),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda told: f"({told[0]}) {told[1]} ({told[2]})"
        ),
        inner.map(lambda one: f"not ({one})"),
    ),
    max_leaves=4,
)


@settings(max_examples=300)
@given(SELECTORS, SELECTORS)
def test_what_is_covered_means_nothing_else(outer_text, inner_text):
    outer, inner = parse_selector(outer_text), parse_selector(inner_text)
    if covers(outer, inner):
        assert [
            one for one in UNIVERSE if inner.could_mean(one) and not outer.could_mean(one)
        ] == []


@given(SELECTORS, SELECTORS)
def test_what_is_narrowed_by_the_text_itself_is_covered(outer_text, inner_text):
    # What a NOT excludes by a pattern is not looked through.
    outer = parse_selector(outer_text)
    if covers(outer, outer):
        assert covers(outer, parse_selector(f"({inner_text}) and ({outer_text})"))


@pytest.mark.parametrize(
    ("outer", "inner", "covered"),
    [
        ("n*", "n1", True),
        ("n*", "n[1-400]", True),
        ("n*", "n*", True),
        ("n*", "node:n*", True),
        ("n*", "service:web@n[1-2] or node:n3", True),
        ("n*", "n1 and power=on", True),
        ("n* and not n3", "n[1-2]", True),
        ("n* and not n3", "n[1-3]", False),
        ("n* and not n3", "n* and not n[3-4]", True),
        ("n* or m1", "node:m1", True),
        ("n* and not service:*", "node:n1", True),
        ("node:n*", "n1", False),
        ("service:web@n*", "service:web@n1", True),
        ("service:web@n*", "service:*@n1", False),
        ("n*", "m1", False),
        ("n*", "not m1", False),
        ("n*", "power=on", False),
        ("n*", "@gpu", False),
        # These do mean no more, which the texts do not show.
        ("n*", "n1*", False),
        ("n1 or n2", "n[1-2]", False),
    ],
)
def test_what_shows(outer, inner, covered):
    assert covers(parse_selector(outer), parse_selector(inner)) is covered
