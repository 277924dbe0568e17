"""Node-sets: what they name, what is wrong with bad ones, and that folding loses nothing."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.model.errors import HapteraError
from haptera.selectors.names import Member, no_groups
from haptera.selectors.nodeset import (
    GROUPS_MAX,
    NODES_MAX,
    NODESET_BYTES_MAX,
    STEPS_MAX,
    WILD_MAX,
    expand,
    fold,
    members,
    parse_nodeset,
)
from haptera.selectors.numbers import RANGE_BYTES_MAX


def test_each_bracket_is_a_dimension_and_the_last_turns_fastest():
    assert expand("rack[1-2]n[09-10]") == ("rack1n09", "rack1n10", "rack2n09", "rack2n10")


def test_ranges_and_numbers_stand_together_in_a_bracket():
    assert expand("n[1-3,7,09]") == ("n1", "n2", "n3", "n7", "n09")


def test_a_step_leaves_numbers_out():
    assert expand("n[1-9/2]") == ("n1", "n3", "n5", "n7", "n9")
    assert expand("n[01-10/3]x") == ("n01x", "n04x", "n07x", "n10x")


def test_digits_beside_a_bracket_belong_to_its_numbers():
    assert expand("n1[2-3]") == ("n12", "n13")
    assert expand("n[9-10]0,n0[9-10]") == ("n90", "n100", "n09", "n010")
    assert not parse_nodeset("n1[2-3]").has("n3")


def test_set_operators_go_from_left_to_right():
    assert expand("n[1-4]!n[2-3],n2") == ("n1", "n4", "n2")
    assert expand("n[1-4] & n[3-6]") == ("n3", "n4")
    assert expand("n[1-3]^n[3-4]") == ("n1", "n2", "n4")
    assert expand("n1^n1^n1") == ("n1",)


NODES = [f"rack{rack}n{n:02}" for rack in (1, 2, 10) for n in (1, 2, 3)]


def groups(group):
    by_rack = {
        f"r{rack}": [one for one in NODES if one.startswith(f"rack{rack}n")] for rack in (1, 2)
    }
    known = {(None, "*"): NODES, (None, "gpu"): ["rack1n01", "rack2n02"]}
    return {**known, **{("rack", name): some for name, some in by_rack.items()}}.get(
        (group.source, group.name), ()
    )


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("@gpu", ["rack1n01", "rack2n02"]),
        ("@rack:r[1-2]&*n03", ["rack1n03", "rack2n03"]),
        ("@rack:r9", []),
        ("@*!@rack:r[1-2]", ["rack10n01", "rack10n02", "rack10n03"]),
        ("rack1n*", ["rack1n01", "rack1n02", "rack1n03"]),
        ("rack1*n01", ["rack1n01", "rack10n01"]),
        ("rack?n0[1-2]", ["rack1n01", "rack1n02", "rack2n01", "rack2n02"]),
        # A bracket is short for its numbers, one after the other, also beside a `*`.
        ("rack[1,3]*1", ["rack1n01", "rack10n01"]),
        ("rack2*,rack2n0[2-4]", ["rack2n01", "rack2n02", "rack2n03", "rack2n04"]),
        ("rack10n0[1-9]&@*", ["rack10n01", "rack10n02", "rack10n03"]),
    ],
)
def test_groups_and_patterns_name_nodes_that_there_are(text, meant):
    assert list(expand(text, groups)) == meant
    found = parse_nodeset(text)
    assert [one for one in [*NODES, "rack2n04"] if found.has(one, groups)] == sorted(
        meant, key=[*NODES, "rack2n04"].index
    )


def test_without_groups_only_names_can_be_used():
    for text, what in (("n*", "a pattern"), ("@gpu", "the group @gpu"), ("@r:1", "the group @r:1")):
        with pytest.raises(HapteraError, match=what):
            expand(text, no_groups)


def test_a_name_written_twice_is_there_once():
    assert expand("n[1-2],n2,n1,login") == ("n1", "n2", "login")


def test_a_member_tells_what_stands_for_its_brackets():
    assert members("r[1]n[07-08]x") == (
        Member("r1n07x", ("1", "07")),
        Member("r1n08x", ("1", "08")),
    )


@pytest.mark.parametrize(
    ("text", "character", "what"),
    [
        ("", 1, "a name is missing"),
        ("a,,b", 3, "a name is missing"),
        ("a,", 3, "a name is missing"),
        ("!a", 1, "a name is missing"),
        ("a!&b", 3, "a name is missing"),
        ("@", 2, "the name of a group is missing"),
        ("n1,@rack:", 10, "the name of a group is missing"),
        ("@r[1-2]:x", 2, "a source of groups is one name"),
        ("@a:b:c", 5, "':' does not belong here"),
        ("@gp*", 2, "a * in the name of a group"),
        ("n[1-2][3-4]", 7, "two brackets with no letter between"),
        ("n[1-2]0[3-4]", 1, "two brackets with no letter between"),
        ("n[1-4", 2, "a bracket that is not closed"),
        ("n1-4]", 5, "a bracket without its counterpart"),
        ("n[[1]]", 3, "'' is not a range of numbers"),
        ("n[1-2-3]", 6, "this is not a range of numbers"),
        ("n[-1]", 3, "'-1' is not a range of numbers"),
        ("n[1-4/0]", 3, "'1-4/0' has a step that cannot be used"),
        ("n[4/2]", 3, "'4/2' has a step that cannot be used"),
        ("n[]", 3, "'' is not a range of numbers"),
        ("a,n[1,x]", 7, "'x' is not a range of numbers"),
        ("n[4-1]", 3, "4-1 goes down"),
        ("n[01-100]", 3, "01-100 differ in width"),
        ("n[1-08]", 3, "1-08 differ in width"),
        ("n[1-999999999999999999999]", 3, f"more than {NODES_MAX} nodes"),
        ("r[1-1000]n[1-1000]", 1, f"more than {NODES_MAX} nodes"),
        (f"a[1-{NODES_MAX}],a[1-2]", 13, f"more than {NODES_MAX} nodes"),
        ("n[0-99999999]", 3, f"more than {NODES_MAX} nodes"),
        ("n[1-9]" * 30, 1, f"more than {NODES_MAX} nodes"),
        (f"n[{'9' * 300}]", 3, f"a range longer than {RANGE_BYTES_MAX} characters"),
        ("@g[1-2000]", 2, f"more than {GROUPS_MAX} groups"),
        ("r*n[1-300]", 1, f"more than {WILD_MAX} * and ?, with the brackets spelt out"),
        ("a b", 3, "'b' does not belong here"),
        ("a/b", 2, "'/' does not belong here"),
        ("-a", 1, "'-a' is not a name"),
        ("n[1]-", 1, "'n1-' is not a name"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, character, what):
    with pytest.raises(HapteraError) as raised:
        expand(text)
    assert raised.value.what == what
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    assert raised.value.where == f"node-set {shown!r}, character {character}"
    assert raised.value.do


def test_a_name_of_thousands_of_digits_is_refused():
    for text in ("9" * 5_000, f"n{'9' * 5_000}[1-2]", f"[1-2]{'0' * 5_000}"):
        with pytest.raises(HapteraError):
            parse_nodeset(text)


def test_what_would_take_too_long_is_refused():
    with pytest.raises(HapteraError, match=f"more than {STEPS_MAX} set operators"):
        parse_nodeset("n1" + "&n1" * STEPS_MAX)
    with pytest.raises(HapteraError, match="the node-set is too long"):
        parse_nodeset("n1," * NODESET_BYTES_MAX)
    assert len(expand(",".join(f"n{n}" for n in range(9_000)))) == 9_000


def test_a_regular_set_folds_into_one_pattern():
    for text in ("rack[1-4]n[01-40]", "n[8-12]", "n[008-012]", "r[1,3]c[1-2]n[0-9]", "login"):
        assert fold(reversed(expand(text))) == text


def test_a_hole_is_written_as_what_is_left():
    assert fold(set(expand("rack[1-4]n[1-4]")) - {"rack3n2"}) == "rack[1-2,4]n[1-4],rack3n[1,3-4]"


def test_widths_are_never_mixed():
    assert fold(["n1", "n01", "n2", "n02", "n9", "n10"]) == "n[1-2,9,01-02,10]"


def test_a_padded_range_ends_where_it_would_have_to_widen():
    assert fold(expand("n[01-99],n[100-101]")) == "n[01-99,100-101]"


def names() -> st.SearchStrategy[str]:
    # Around the places where a number grows by a digit.
    plain = st.sampled_from([0, 1, 2, 8, 9, 10, 11, 98, 99, 100, 101])
    number = st.builds("{0:0{1}}".format, plain, st.integers(1, 3))
    return st.one_of(
        st.builds("n{}".format, number),
        st.builds("rack{}n{}".format, number, number),
        st.builds("r{}c{}n{}x".format, st.integers(0, 3), st.integers(0, 3), number),
        st.sampled_from(["login", "a.b", "7", "007"]),
    )


@given(st.frozensets(names(), min_size=1, max_size=60))
def test_expanding_what_was_folded_gives_the_same_names(some):
    text = fold(some)
    event(f"brackets: {min(text.count('['), 5)}")
    assert sorted(expand(text)) == sorted(some)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=2, max_size=2))
def test_a_full_grid_is_one_pattern_whatever_its_size(bounds):
    (a, b), (c, d) = bounds
    grid = [f"r{i}n{j:02}" for i in range(a, a + b + 1) for j in range(c, c + d + 1)]
    assert "," not in fold(grid)


@given(st.text(alphabet="nr01-,[]/ \u0663!&^@:*?", max_size=20))
def test_any_text_is_a_node_set_or_a_told_error(text):
    try:
        found, told = expand(text, groups), None
    except HapteraError as error:
        found, told = (), error
    assert told is None or (told.where and told.do)
    if told is None:
        some = parse_nodeset(text)
        # A pattern with * or ? speaks of the nodes that there are.
        there = [one for one in found if one in NODES or not {"*", "?"} & set(text)]
        assert all(some.has(one, groups) for one in there)
