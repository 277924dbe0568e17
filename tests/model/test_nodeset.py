"""Node-sets: what they name, what is wrong with bad ones, and that folding loses nothing."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.model.errors import HapteraError
from haptera.model.nodeset import NODES_MAX, Member, expand, fold, members


def test_each_bracket_is_a_dimension_and_the_last_turns_fastest():
    assert expand("rack[1-2]n[09-10]") == ("rack1n09", "rack1n10", "rack2n09", "rack2n10")


def test_ranges_and_numbers_stand_together_in_a_bracket():
    assert expand("n[1-3,7,09]") == ("n1", "n2", "n3", "n7", "n09")


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
        ("n[1-4", 2, "a bracket that is not closed"),
        ("n1-4]", 5, "a bracket without its other"),
        ("n[[1]]", 2, "a bracket without its other"),
        ("n[]", 3, "'' is no range of numbers"),
        ("a,n[1,x]", 7, "'x' is no range of numbers"),
        ("n[4-1]", 3, "4-1 goes down"),
        ("n[01-100]", 3, "01-100 differ in width"),
        ("n[1-08]", 3, "1-08 differ in width"),
        ("n[1-999999999999999999999]", 3, f"more than {NODES_MAX} nodes"),
        ("r[1-1000]n[1-1000]", 1, f"more than {NODES_MAX} nodes"),
        (f"a[1-{NODES_MAX}],a[1-2]", 13, f"more than {NODES_MAX} nodes"),
        ("a b", 1, "'a b' is not a name"),
        ("n[1]-", 1, "'n1-' is not a name"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, character, what):
    with pytest.raises(HapteraError) as raised:
        expand(text)
    assert raised.value.what == what
    assert raised.value.where == f"node-set {text!r}, character {character}"
    assert raised.value.do


def test_a_regular_set_folds_into_one_pattern():
    for text in ("rack[1-4]n[01-40]", "n[8-12]", "n[008-012]", "r[1,3]c[1-2]n[0-9]", "login"):
        assert fold(reversed(expand(text))) == text


def test_a_hole_is_written_as_what_is_left():
    assert fold(set(expand("rack[1-4]n[1-4]")) - {"rack3n2"}) == "rack3n[1,3-4],rack[1-2,4]n[1-4]"


def test_widths_are_never_mixed():
    assert fold(["n1", "n01", "n2", "n02", "n9", "n10"]) == "n[01-02,1-2,9-10]"


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


@given(st.text(alphabet="nr01-,[]/ \u0663", max_size=20))
def test_any_text_is_a_node_set_or_a_told_error(text):
    try:
        found, told = expand(text), None
    except HapteraError as error:
        found, told = (), error
    assert found or (told is not None and told.where and told.do)
