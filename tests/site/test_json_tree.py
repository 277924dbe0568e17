"""JSON read with places: it means what the standard library says, and each piece knows its line."""

import json
import re

import pytest
from hypothesis import assume, event, example, given
from hypothesis import strategies as st

from haptera.model.errors import HapteraError
from haptera.site.syntax.json_tree import JSON_DEPTH_MAX, read_json
from haptera.site.syntax.tree import Branch, Errors, Leaf, Place, Series

DO = "write it by a tool"
TEXT = """\
{"nodes": [
  {"id": "n\\u00e91", "up": true,\t"n": -1.5e3},
  []
], "none": null}
"""

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
)


def read(text):
    errors = Errors()
    return read_json(text, "a.json", errors, DO), [str(error) for _, error in errors]


def meant(tree):
    match tree:
        case Leaf(text, quoted):
            return text if quoted else json.loads(text)
        case Series(items):
            return [meant(one) for one in items]
        case Branch(entries):
            return {key.text: meant(one) for key, one in entries}


def places(tree):
    match tree:
        case Leaf(text, _, place):
            yield text, place.line, place.column
        case Series(items, place):
            yield "[", place.line, place.column
            for item in items:
                yield from places(item)
        case Branch(entries, place):
            yield "{", place.line, place.column
            for key, value in entries:
                yield from places(key)
                yield from places(value)


def test_all_that_is_written_is_found_where_it_stands():
    assert [*places(read(TEXT)[0])] == [
        ("{", 1, 1), ("nodes", 1, 2), ("[", 1, 11),
        ("{", 2, 3), ("id", 2, 4), ("né1", 2, 10),
        ("up", 2, 22), ("true", 2, 28), ("n", 2, 34), ("-1.5e3", 2, 39),
        ("[", 3, 3),
        ("none", 4, 4), ("null", 4, 12),
    ]  # fmt: skip


def test_a_number_of_any_length_is_its_text():
    digits = "9" * 5_000
    assert read(f"[{digits}, -{digits}]")[0].items[0] == Leaf(digits, False, Place("a.json", 1, 2))


def test_of_a_key_that_is_there_twice_the_first_counts_and_it_is_told():
    tree, errors = read('{"a": 1,\n "b": 2, "a": 3}')

    assert meant(tree) == {"a": 1, "b": 2}
    assert errors == ["a.json:2:10: the key a is given already, at a.json:1:2 (write it once)"]


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("", "a.json:1:1", "no JSON: Expecting value"),
        ("[1,\n 2", "a.json:2:3", "no JSON: Expecting ',' delimiter"),
        ('{"a" 1}', "a.json:1:6", "no JSON: Expecting ':' delimiter"),
        ("{a: 1}", "a.json:1:2", "no JSON: Expecting property name enclosed in double quotes"),
        ('"a\nb"', "a.json:1:3", "no JSON: Invalid control character at"),
        ("{} {}", "a.json:1:4", "no JSON: Extra data"),
        ("# x\n{}", "a.json:1:1", "no JSON: Expecting value"),
        ("[" * 100_000, "a.json", f"deeper than {JSON_DEPTH_MAX} levels"),
    ],
)
def test_what_is_no_json_is_told_with_its_place(text, where, what):
    with pytest.raises(HapteraError) as raised:
        read(text)
    assert (raised.value.where, raised.value.what) == (where, what)
    assert raised.value.do == "correct the JSON, or write it by a tool"


@pytest.mark.parametrize(
    ("text", "where"), [("[" * 65 + "]" * 65, "a.json:1:65"), ('["\\ud800"]', "a.json:1:5")]
)
def test_what_is_too_deep_or_half_a_character_is_told_with_its_place(text, where):
    with pytest.raises(HapteraError) as raised:
        read(text)
    assert raised.value.where == where


@given(values, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
@example("\U0001f600\\ud83d\x7f\x85\u2028\ufeff", None, False)
@example("\\\U0001f600", None, True)
def test_it_means_what_the_standard_library_says(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)

    assert meant(read(text)[0]) == value


@given(st.text('[]{}",: \n\\u0e1-+.ntrfalsNI', max_size=12) | texts)
@example("-")
@example("01")
@example("1.")
def test_any_text_is_read_as_the_standard_library_does_or_refused(text):
    try:
        there = json.loads(text)
    except ValueError:
        there = None
        event("refused")
        with pytest.raises(HapteraError):
            read(text)
    else:
        # A line that ends before a colon is refused; no tool writes it.
        assume(re.search(r"\n\s*:", text) is None)
        tree, errors = read(text)
        assert errors or meant(tree) == there or there != there  # NaN is no other


def test_errors_come_in_the_order_of_their_places():
    errors = Errors()
    for column in (2, 1):
        errors.add(HapteraError("wrong"), Place("a", 1, column))

    assert [place.column for place, _ in errors] == [1, 2]
