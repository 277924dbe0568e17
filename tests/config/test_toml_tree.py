"""TOML read with places: it means what the standard library says, and each piece knows its line."""

import json
import tomllib

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.config.toml_tree import read_toml
from haptera.config.tree import DEPTH_MAX, Branch, Leaf, Series, plain_data
from haptera.model.errors import HapteraError

TEXT = '''\
cluster = "three"  # a comment
"n[1-2]".rack = 'r\\1'
many = [ 1_000, 0x1F, # in between
  [true, 2.5,], {a.b = "\\u00e9", c = 1979-05-27 07:32:00}]
[nodes . "n.3"]
  long = """
two "quoted" \\
   lines"""
raw = \'\'\'it's\'\'\'
[[rules]]
for = "a"
[rules.more]
x = -7
[[rules]]
'''


def read(text):
    return read_toml(text, "site.toml")


def places(tree):
    """Each leaf with its place, keys and values, in the order in which they are written."""
    match tree:
        case Leaf(text, _, place):
            yield text, place.line, place.column
        case Series(items):
            for item in items:
                yield from places(item)
        case Branch(entries):
            for key, value in entries:
                yield from places(key)
                yield from places(value)


def test_all_that_is_written_is_found_where_it_stands():
    assert [*places(read(TEXT))] == [
        ("cluster", 1, 1), ("three", 1, 11),
        ("n[1-2]", 2, 1), ("rack", 2, 10), ("r\\1", 2, 17),
        ("many", 3, 1), ("1000", 3, 10), ("31", 3, 17),
        ("true", 4, 4), ("2.5", 4, 10),
        ("a", 4, 18), ("b", 4, 20), ("é", 4, 24), ("c", 4, 34), ("1979-05-27 07:32:00", 4, 38),
        ("nodes", 5, 2), ("n.3", 5, 10),
        ("long", 6, 3), ('two "quoted" lines', 6, 10), ("raw", 9, 1), ("it's", 9, 7),
        ("rules", 10, 3), ("for", 11, 1), ("a", 11, 7),
        ("more", 12, 8), ("x", 13, 1), ("-7", 13, 5),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("a = \n", "site.toml:1:5", "invalid value"),
        ("a = 1\na = 2\n", "site.toml:2:6", "cannot overwrite a value"),
        ("a = 1\n\nb = 'x", "site.toml:3:7", 'expected "\'"'),
        ("[a\n", "site.toml:1:3", "expected ']' at the end of a table declaration"),
        ("a = " + "[" * DEPTH_MAX + "]" * DEPTH_MAX, f"site.toml:1:{4 + DEPTH_MAX}", "deeper than"),
        ("a = " + "[" * 5000, "site.toml", "deeper than"),
        (".".join("a" * (DEPTH_MAX + 1)) + " = 1", "site.toml:1:33", "deeper than"),
        ("[" + ".".join("a" * DEPTH_MAX) + "]\nb.c = 1", "site.toml:1:1", "deeper than"),
    ],
)
def test_what_is_no_toml_is_told_with_its_place(text, where, what):
    with pytest.raises(HapteraError) as raised:
        read(text)
    assert (raised.value.where, raised.value.do is not None) == (where, True)
    assert raised.value.what.startswith(what)


keys = st.text("abñ.# -\"'[=", max_size=4)
texts = st.text("ab\"'\\# \n\té]}", max_size=6)
scalars = st.one_of(texts, st.integers(-99, 10**12), st.booleans(), st.sampled_from([0.5, -2.25]))
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
tables = st.dictionaries(keys, values, max_size=4)


def quoted(text, draw):
    """A text in any of the ways in which TOML has it."""
    ways = [json.dumps(text, ensure_ascii=draw(st.booleans()))]
    if "'" not in text and "\n" not in text:
        ways.append(f"'{text}'")
    if "'''" not in text and not text.endswith("'"):
        ways.append(f"'''\n{text}'''")
    if '"""' not in text and "\\" not in text:
        ways.append(f'"""\n{text}"""' if not text.endswith('"""') else ways[0])
    return draw(st.sampled_from(ways))


def key(text, draw):
    plain = text.isascii() and text.isalnum()
    return text if plain and draw(st.booleans()) else json.dumps(text)


def inline(value, draw):
    blank = draw(st.sampled_from(["", " ", " # c\n "]))
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return quoted(value, draw)
        case list():
            return f"[{blank}{f',{blank}'.join(inline(one, draw) for one in value)}{blank}]"
        case dict():
            pairs = (f"{key(name, draw)} = {inline(one, draw)}" for name, one in value.items())
            return f"{{ {', '.join(pairs)} }}".replace(" # c\n ", " ")
        case _:
            return str(value)


def lines(table, path, draw):
    """The table in lines: what can be in tables of their own is there, now and then."""
    later = []
    for name, value in table.items():
        own = [*path, key(name, draw)]
        if isinstance(value, dict) and draw(st.booleans()):
            later += [f"[ {' . '.join(own)} ]", *lines(value, own, draw)]
        elif value and isinstance(value, list) and all(isinstance(one, dict) for one in value):
            for one in value:
                later += [f"[[{'.'.join(own)}]]", *lines(one, own, draw)]
        else:
            yield f"{own[-1]} = {inline(value, draw)}"
    yield from later


@given(tables, st.data())
def test_a_document_means_what_the_standard_library_says(table, data):
    text = "\n".join(lines(table, [], data.draw))
    try:
        wanted = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        event("no TOML")
        return
    event(f"size {min(len(wanted), 3)}")
    assert plain_data(read(text)) == wanted
    for found, line, column in places(read(text)):
        rest = text.splitlines(keepends=True)[line - 1][column - 1 :]
        assert rest.startswith((found, '"', "'", "["))


@given(st.text("a.=[]{}\"'\n\\#,1 -", max_size=30))
def test_any_text_is_toml_or_a_told_error(text):
    try:
        tree = read(text)
    except HapteraError as error:
        told = (error.what, error.where, error.do)
        assert all(told), told
    else:
        assert plain_data(tree) == tomllib.loads(text)
