"""Node-sets beside ClusterShell's own: the same names, operators and groups, folded alike.

Where the two differ on purpose is a table here, and in docs/reference/selectors.md.
"""

import re
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.model.errors import HapteraError
from haptera.selectors.nodeset import expand, fold, parse_nodeset

reason = "ClusterShell is not installed: pip install -r requirements-dev.txt"
shell = pytest.importorskip("ClusterShell.NodeSet", reason=reason)
sources = pytest.importorskip("ClusterShell.NodeUtils", reason=reason)
ShellSet, Refused = shell.NodeSet, shell.NodeSetException

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/selectors.md"

RACK_NUMBERS = (1, 2, 3, 10)
NODES = [*(f"r{rack}n{n:02}" for rack in RACK_NUMBERS for n in range(1, 5)), "login", "n1", "n12"]
NAMED = {"gpu": "r[1-2]n[01-02]", "login": "login", "both": "@gpu,@login"}
RACKS = {f"r{rack}": f"r{rack}n[01-04]" for rack in RACK_NUMBERS}

RESOLVER = sources.GroupResolver(sources.GroupSource("named", NAMED, allgroups=",".join(NODES)))
RESOLVER.add_source(
    sources.GroupSource("rack", RACKS, allgroups=",".join(f"@rack:{one}" for one in RACKS))
)


def groups(group):
    if group.name == "*":
        return NODES if group.source is None else expand(",".join(RACKS.values()))
    text = (NAMED if group.source is None else RACKS).get(group.name)
    return () if text is None else expand(text, groups)


def numbers(*, steps: bool = True) -> st.SearchStrategy[str]:
    """The inside of a bracket, around the places where a number grows by a digit."""
    edge = st.sampled_from([0, 1, 2, 5, 8, 9, 10, 11, 98, 99, 100])

    @st.composite
    def ranges(draw):
        first = draw(edge)
        last = first + draw(st.integers(0, 6))
        width = draw(st.sampled_from([0, len(str(last)), len(str(last)) + 1]))
        text = f"{first:0{width}}-{last:0{width}}"
        return f"{text}/{draw(st.integers(1, 3))}" if steps and draw(st.booleans()) else text

    single = st.builds("{0:0{1}}".format, edge, st.integers(1, 3))
    return st.lists(st.one_of(single, ranges()), min_size=1, max_size=3).map(",".join)


def patterns() -> st.SearchStrategy[str]:
    bracket = numbers().map("[{}]".format)
    return st.one_of(
        st.sampled_from(["login", "n1", "007", "a.b-c", "n12"]),
        st.builds("n{}".format, bracket),
        st.builds("{}".format, bracket),
        st.builds("r{}n{}".format, bracket, bracket),
        st.builds("r{}n{}".format, st.integers(1, 12), bracket),
        st.builds("r{}c{}n{}x".format, bracket, st.integers(0, 3), bracket),
        # Digits beside a bracket, without steps and widths that grow: see the table below.
        st.builds("n{}[{}-{}]".format, st.integers(1, 2), st.integers(1, 4), st.integers(4, 9)),
        st.builds("n[{}]{}".format, numbers(steps=False), st.integers(0, 20)),
    )


def wild() -> st.SearchStrategy[str]:
    return st.one_of(
        st.sampled_from(["*", "r1*", "r?n01", "*n0[1-2]", "r[1-3]*", "r[1-2]*0[1-4]", "l*g?n"]),
        st.sampled_from(["@gpu", "@both", "@*", "@rack:r1", "@rack:r[2-3]", "@rack:*", "@none"]),
    )


def joined(terms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operator = st.sampled_from([",", "!", "&", "^", " , ", " ! ", "& "])
    rest = st.lists(st.tuples(operator, terms), max_size=4)
    return st.builds(lambda first, more: first + "".join(map("".join, more)), terms, rest)


@given(joined(patterns()))
def test_the_same_names_are_meant(text):
    there = ShellSet(text, resolver=RESOLVER)
    here = expand(text)
    event(f"names: {min(len(here), 3)}")
    assert sorted(here) == sorted(there)
    some = parse_nodeset(text)
    assert all(some.has(name) for name in here)
    assert not any(some.has(name) for name in NODES if name not in there)


@given(joined(st.one_of(wild(), patterns())))
def test_patterns_and_groups_find_the_same_nodes(text):
    there = ShellSet(text, resolver=RESOLVER)
    event(f"names: {min(len(there), 3)}")
    # Names that no node has are left out: a pattern fits them here, and never there.
    found = {one for one in expand(text, groups) if one in NODES}
    assert found == {one for one in there if one in NODES}
    some = parse_nodeset(text)
    assert [one for one in NODES if some.has(one, groups)] == [one for one in NODES if one in there]


@given(joined(patterns()))
def test_what_it_folded_is_expanded_in_its_order(text):
    there = ShellSet(text, resolver=RESOLVER)
    if there:
        assert list(expand(str(there))) == list(there)


def flat() -> st.SearchStrategy[str]:
    number = st.one_of(st.integers(0, 12), st.integers(95, 104))
    padded = st.builds("{0:0{1}}".format, number, st.integers(1, 4))
    return st.one_of(
        st.builds("n{}".format, padded),
        st.builds("n{}x".format, padded),
        padded,
        st.sampled_from(["login", "n", "n-a", "N1", "a.b"]),
    )


@given(st.sets(flat(), min_size=1, max_size=40))
def test_names_of_one_number_are_folded_into_the_same_text(names):
    here = fold(names)
    there = str(ShellSet.fromlist(sorted(names), resolver=RESOLVER))
    event(f"same text: {here == there}")
    # It misses the range 99-100 behind a number of two digits with a zero in front.
    assert here == there or _misses_a_range(here)
    assert sorted(expand(here)) == sorted(names)


def _misses_a_range(text: str) -> bool:
    """Whether a range grows by a digit, in a bracket with zeros in front of as many as it had."""
    for bracket in re.findall(r"\[(.*?)\]", text):
        ends = [part.split("-") for part in bracket.split(",")]
        growing = {len(first) for first, *last in ends if last and len(last[0]) > len(first)}
        if any(first[0] == "0" and len(first) in growing for first, *_ in ends):
            return True
    return False


def test_it_misses_a_range_behind_zeros_as_the_page_says():
    names = ["n00", "n99", "n100"]
    assert (fold(names), str(ShellSet.fromlist(names, resolver=RESOLVER))) == (
        "n[00,99-100]",
        "n[00,99,100]",
    )
    assert "`n[00,99-100]`" in PAGE.read_text(encoding="utf-8")


@given(st.sets(st.builds("r{}n{:02}".format, st.integers(1, 4), st.integers(1, 5)), min_size=1))
def test_names_of_two_numbers_are_folded_into_the_same_set(names):
    there = ShellSet.fromlist(sorted(names), resolver=RESOLVER)
    here = fold(names)
    event(f"alike: {sorted(here.split(',r')) == sorted(str(there).split(',r'))}")
    assert ShellSet(here, resolver=RESOLVER) == there
    assert sorted(expand(str(there))) == sorted(expand(here)) == sorted(names)


@given(st.text(alphabet="nr01-,[]/!&^ ", max_size=16))
def test_whatever_is_read_here_is_read_there_and_means_the_same(text):
    try:
        here = expand(text)
    except HapteraError:
        return
    if _beside(text):
        return
    assert sorted(here) == sorted(ShellSet(text, resolver=RESOLVER))


def _beside(text: str) -> bool:
    """Whether digits stand beside a bracket: there it reads ranges otherwise."""
    return re.search(r"[0-9]\[|\][0-9]", text) is not None


# What is written, what it means here, and there: None where it is refused.
DIFFERENT = [
    ("n1[9-10]", ["n19", "n110"], [f"n{n}" for n in range(19, 111)]),
    ("n0[9-10]", ["n09", "n010"], None),
    ("n[1-5/2]0", ["n10", "n30", "n50"], None),
    ("", None, []),
    ("n[-1-1]", None, ["n-1", "n0", "n1"]),
    ("n99!n*", [], ["n99"]),
    ("n1 n2", None, ["n1 n2"]),
    ("n%1", None, ["n%1"]),
]


@pytest.mark.parametrize(("text", "here", "there"), DIFFERENT)
def test_the_two_differ_as_the_page_says(text, here, there):
    def ours():
        return sorted(expand(text))

    def theirs():
        return sorted(ShellSet(text, resolver=RESOLVER))

    for read, meant, refusal in ((ours, here, HapteraError), (theirs, there, Refused)):
        if meant is None:
            with pytest.raises(refusal):
                read()
        else:
            assert read() == sorted(meant)
    written = text or '""'
    assert f"`{written}`" in PAGE.read_text(encoding="utf-8")
