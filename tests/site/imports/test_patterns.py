"""Values that follow the numbers in names: written as one, and filled to just what they were."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.site.imports.patterns import templates
from haptera.site.model.nodes import dimensions
from haptera.site.syntax.template import fill

NAMES = [f"r{rack}n{n:02}" for rack in (1, 2) for n in (1, 2, 3, 12)]

names = st.one_of(
    st.sampled_from([*NAMES, "login", "n1n2", "7", "a-1.b-2"]),
    st.from_regex(r"[a-z]{0,2}[0-9]{1,3}(-[0-9]{1,2})?", fullmatch=True),
)
values = st.one_of(
    st.text("{}ab1029.:é", max_size=9),
    st.from_regex(r"10\.[0-9]{1,3}\.[0-9]{1,3}", fullmatch=True),
)


def filled(found):
    return {name: fill(text, dimensions(name).__getitem__) for name, text in found.items()}


@given(st.dictionaries(names, values, max_size=12))
def test_filled_they_are_what_was_written(written):
    found = templates(written)

    event(f"shortened: {len(set(found.values())) < len(set(written.values()))}")
    assert filled(found) == written


@given(
    st.sets(st.sampled_from(NAMES), min_size=2),
    st.sampled_from(["{r}", "{r:d}", "{r+10}", "7"]),
    st.sampled_from(["{n}", "{n:d}", "{n+100}", "x"]),
)
def test_those_that_follow_the_numbers_are_one(some, first, second):
    written = {
        name: fill(f"10.{first}.{second}:623", dimensions(name).__getitem__) for name in some
    }

    assert len(set(templates(written).values())) == 1


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"n1": "10.0.0.11", "n2": "10.0.0.12"}, {"10.0.0.{n+10}"}),
        ({"n12": "10.0.0.2", "n13": "10.0.0.3"}, {"10.0.0.{n-10}"}),
        ({"r1n1": "a1", "r1n2": "a2", "r2n1": "a9", "r2n2": "a10"}, {"a{n}", "a{n+8}"}),
        ({"n01": "01", "n02": "02"}, {"{n}"}),
        ({"n1n1": "1", "n1n2": "2"}, {"{2}"}),
        ({"n1n01": "1", "n1n02": "2"}, {"{2:d}"}),
        ({"n1n1": "11", "n1n2": "12"}, {"11", "12"}),
        ({"n1": "08", "n2": "09"}, {"08", "09"}),
        ({"n1": f"{10**20}", "n2": f"{10**20 + 1}"}, {f"{10**20}", f"{10**20 + 1}"}),
        ({"name1": "1", "name2": "2"}, {"{name}"}),
        ({"n1": "5", "n2": "9"}, {"5", "9"}),
        ({"n1": "{1", "n2": "{2"}, {"{{{n}"}),
        ({"n9": "same", "n10": "same"}, {"same"}),
    ],
)
def test_what_they_are_written_as(written, expected):
    found = templates(written)

    assert (set(found.values()), filled(found)) == (expected, written)
