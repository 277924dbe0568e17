"""Selectors: which entities each form means by name, and what is refused, with its place."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.selectors.nodeset import GROUPS_MAX, NODES_MAX, WILD_MAX
from haptera.selectors.selector import (
    DEPTH_MAX,
    PARTS_MAX,
    SELECTOR_BYTES_MAX,
    Selector,
    fold_entities,
    parse_selector,
)
from haptera.selectors.selector_ast import (
    Age,
    AllOf,
    Amount,
    AnyOf,
    Comparison,
    Datum,
    Not,
    Pattern,
    StateLayer,
)

N1, N2 = node_id("rack1n1"), node_id("rack1n2")
WEB1, WEB2 = EntityId("service", "web", "rack1n1"), EntityId("service", "web", "rack1n2")
MINE, OURS = EntityId("module", "service", "rack1n1"), EntityId("module", "labnode", None)
EVERYTHING = [N1, N2, WEB1, WEB2, MINE, OURS]


def meant_by(selector: Selector) -> list[EntityId]:
    return [one for one in EVERYTHING if selector.could_mean(one)]


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
        ("rack?n[2-9]", [N2, WEB2]),
        ("*!rack1n1", [N2, WEB2]),
        ("rack1n[1-2] & *2", [N2, WEB2]),
        ("node:rack1n1", [N1]),
        ("node:*", [N1, N2]),
        ("node:rack[1-4]*", [N1, N2]),
        ("service:web", [WEB1, WEB2]),
        ("service:*@rack1n2", [WEB2]),
        ("service:w*,db@rack1n[1-9]!rack1n1", [WEB2]),
        ("module:labnode", [OURS]),
        ("module:*@*", [MINE, OURS]),
        ("rack2n1", []),
        ("node:* or module:*", [N1, N2, MINE, OURS]),
        ("rack1n1 and not service:*", [N1, MINE]),
        ("not rack1*", [OURS]),
        ("not (node:* or service:*)", [MINE, OURS]),
        # `and` binds closer than `or`, and `not` closer than both.
        ("node:rack1n1 or service:* and rack1n2", [N1, WEB2]),
        ("not node:* and rack1n2", [WEB2]),
        # A comparison, or a group, may be so of each.
        ("node:* and power=off", [N1, N2]),
        ("node:* or power=off", EVERYTHING),
        ("not power=off and not node:*", [WEB1, WEB2, MINE, OURS]),
        ("service:web@@gpu", [WEB1, WEB2]),
        ("@gpu", [N1, N2, WEB1, WEB2, MINE]),
        # What is read as a word elsewhere is a name here.
        ("node:and or node:not", []),
        ("rack1n1andmore or rack1n2", [N2, WEB2]),
    ],
)
def test_a_selector_means_these(text: str, meant: list[EntityId]) -> None:
    assert meant_by(parse_selector(text)) == meant


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("power=off", Comparison(Datum("power"), ("off",), otherwise=False)),
        ("power != off", Comparison(Datum("power"), ("off",), otherwise=True)),
        ("power in (off, hung)", Comparison(Datum("power"), ("off", "hung"), otherwise=False)),
        ("power not in(off)", Comparison(Datum("power"), ("off",), otherwise=True)),
        (
            "service.desired.run=running",
            Comparison(Datum("run", "service", StateLayer.DESIRED), ("running",), otherwise=False),
        ),
        (
            "last.power=on",
            Comparison(Datum("power", None, StateLayer.LAST), ("on",), otherwise=False),
        ),
        ('rack=""', Comparison(Datum("rack"), ("",), otherwise=False)),
        (r'rack="a \"b\" \\"', Comparison(Datum("rack"), ('a "b" \\',), otherwise=False)),
        ("bmc=127.0.0.1:4280", Comparison(Datum("bmc"), ("127.0.0.1:4280",), otherwise=False)),
        ("age(agent)>1m", Age(Datum("agent"), ">", 60_000)),
        ("temp.inlet>35", Amount("temp.inlet", ">", 35.0)),
        ("disk.used[/my-disk] <= -1.5e3", Amount("disk.used[/my-disk]", "<=", -1500.0)),
        ("load<1", Amount("load", "<", 1.0)),
        ("age( node.agent ) <= 250ms", Age(Datum("agent", "node"), "<=", 250)),
    ],
)
def test_a_comparison_is_read_as_it_is_written(text: str, choice: object) -> None:
    assert parse_selector(text).choice == choice


def test_joined_parts_keep_their_order() -> None:
    a, b = (Comparison(Datum("power"), (value,), otherwise=False) for value in ("on", "off"))
    assert parse_selector("power=on or not power=off").choice == AnyOf((a, Not(b)))
    assert parse_selector("(power=on) and (power=off and power=on)").choice == AllOf(
        (a, AllOf((b, a)))
    )


def test_two_of_one_text_are_one() -> None:
    assert {parse_selector("n[1-2] or @gpu"), parse_selector("n[1-2] or @gpu")} == {
        parse_selector("n[1-2] or @gpu")
    }


@pytest.mark.parametrize(
    ("text", "by_name", "by_age"),
    [
        ("rack1* and not service:web@n1", True, False),
        ("@gpu", False, False),
        ("not service:web@@gpu", False, False),
        ("power=off", False, False),
        ("n1 or not age(agent)>1m", False, True),
        ("n1 and temp.inlet>35", False, True),
    ],
)
def test_it_is_known_what_decides(text: str, by_name: bool, by_age: bool) -> None:
    selector = parse_selector(text)
    assert (selector.by_name, selector.by_age) == (by_name, by_age)


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("n[1-2]", ["n1", "n2"]),
        ("node:n[1-2] and power=off", ["n1", "n2"]),
        ("power=off and service:*@n[1-9]!n[2-9]", ["n1"]),
        ("n1 or power=off", None),
        ("n* and @gpu", None),
        ("service:web", None),
    ],
)
def test_the_nodes_that_all_of_it_is_on_are_known(text: str, nodes: list[str] | None) -> None:
    found = parse_selector(text).nodes()
    assert (None if found is None else [one.name for one in found.members()]) == nodes


@pytest.mark.parametrize(
    ("text", "character", "what"),
    [
        ("", 1, "a name is missing"),
        ("   ", 4, "a name is missing"),
        ("rack[1", 5, "a bracket that is not closed"),
        (":web", 1, "a name is missing"),
        ("service:", 9, "a name is missing"),
        ("service:web@", 13, "a name is missing"),
        ("node:n1@n2", 8, "a node is on itself"),
        ("service:@gpu", 1, "groups contain nodes only"),
        ("a b", 3, "'b' does not belong here"),
        ("n1 power=off", 4, "'p' does not belong here"),
        ("power=off,on", 10, "',' does not belong here"),
        ("n[0-99999999]", 3, f"more than {NODES_MAX} nodes"),
        # What is bounded is so in all of a text.
        ("n[1-150000] or n[1-60000]", 16, f"more than {NODES_MAX} nodes"),
        ("@a[1-200] or not @b[1-100]", 19, f"more than {GROUPS_MAX} groups"),
        (
            "n[1-200]* and *m[1-99]",
            15,
            f"more than {WILD_MAX} * and ?, with the brackets spelt out",
        ),
        ("power=", 7, "a value is missing"),
        ("power==on", 7, "a value is missing"),
        ('rack="a', 6, "a value is missing"),
        ("power in off", 10, "the values are missing"),
        ("power in (off", 14, "a list of values that is not closed"),
        ("power in ()", 11, "a value is missing"),
        ("a.b.power=on", 1, "'a.b.power' is not a variable"),
        ("age(agent)", 1, "this does not compare an age"),
        ("age(agent)=1m", 1, "this does not compare an age"),
        ("age(agent)>1", 12, "a duration is missing"),
        ("age(agent)>1min", 12, "a duration is missing"),
        ("(n1", 1, "a parenthesis that is not closed"),
        ("n1)", 3, "')' does not belong here"),
        ("n1 or", 6, "a name is missing"),
        ("n1 or or n2", 7, "something to select is missing"),
        ("and", 1, "something to select is missing"),
        ("not", 1, "something to select is missing"),
        ("n1 and not", 8, "something to select is missing"),
        ("(" * 40 + "n1", DEPTH_MAX + 1, f"deeper than {DEPTH_MAX} levels"),
        ("not " * 40 + "n1", 4 * DEPTH_MAX + 1, f"deeper than {DEPTH_MAX} levels"),
        (
            " or ".join(["n1"] * (PARTS_MAX + 1)),
            6 * PARTS_MAX + 3,
            f"more than {PARTS_MAX} names and comparisons",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, character: int, what: str) -> None:
    with pytest.raises(HapteraError) as raised:
        parse_selector(text)
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    assert raised.value.what == what
    assert raised.value.where == f"selector {shown!r}, character {character}"
    assert raised.value.do


UNIVERSE = [
    *map(node_id, ("n1", "n2", "n03", "login")),
    *(EntityId("service", name, node) for name in ("web1", "web2", "db") for node in ("n1", "n2")),
    # The cluster's own, of names that nothing on a node has.
    *(EntityId("module", name, None) for name in ("labnode", "rack1")),
    EntityId("module", "jobs", "n1"),
]


@given(st.sets(st.sampled_from(UNIVERSE), min_size=1))
def test_what_is_folded_into_a_selector_is_meant_by_it_and_nothing_else(
    some: set[EntityId],
) -> None:
    selector = parse_selector(fold_entities(some))
    assert {one for one in UNIVERSE if selector.could_mean(one)} == some


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(HapteraError, match=f"a selector longer than {SELECTOR_BYTES_MAX} bytes"):
        parse_selector("x" * (SELECTOR_BYTES_MAX + 1))


WORDS = [
    *("n1", "rack[1-4]*", "@gpu", "@rack:r1", "service:web", "node:", "*", "power", "age("),
    *("=", "!=", "in", "not", "and", "or", "(", ")", ",", "!", "@", '"', "\\", ">", "1m", "\u0663"),
]


@given(st.lists(st.sampled_from(WORDS), max_size=10), st.sampled_from(["", " "]))
def test_any_text_is_a_selector_or_a_told_error(words: list[str], between: str) -> None:
    text = between.join(words)
    try:
        selector, told = parse_selector(text), None
    except HapteraError as error:
        selector, told = None, error
    if selector is None:
        assert told is not None
        assert told.where
        assert told.do
    else:
        assert isinstance(selector.could_mean(N1), bool)


@given(st.text("ab*", min_size=1, max_size=8), st.text("ab", min_size=1, max_size=8))
def test_a_star_stands_for_any_characters(pattern: str, name: str) -> None:
    assume(pattern.strip("*") and "*" in pattern)
    meant = parse_selector(f"node:{pattern}").could_mean(node_id(name))
    assert meant == (re.fullmatch(pattern.replace("*", ".*"), name) is not None)


def test_a_pattern_of_many_stars_is_answered_at_once() -> None:
    pattern = parse_selector("node:" + "*a" * 200 + "*b")
    assert not pattern.could_mean(node_id("a" * 64))
    assert not parse_selector("node:" + "*" * 250 + "b").could_mean(node_id("a" * 64))


def test_all_names_are_no_pattern() -> None:
    assert parse_selector("*").choice == Pattern()
    assert parse_selector("service:*@*").choice == Pattern("service")


@pytest.mark.parametrize(
    "text",
    [
        *("temp.inlet>", "temp.inlet>hot", "temp.inlet>3x", "temp.inlet>>3", "temp.inlet>nan"),
        *("temp.inlet[>3", "Temp>3", "temp.inlet > 1e999", "temp inlet>3", "temp.inlet>1.2.3"),
    ],
)
def test_what_is_no_number_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(HapteraError, match="character"):
        parse_selector(text)
