"""Templates: what stands in a hole, what it can count, and what cannot be filled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.model.errors import HapteraError
from haptera.site.model.nodes import dimensions
from haptera.site.syntax.template import fill

KNOWN = {"name": "rack2n07", "rack": "2", "n": "07", "1": "2", "2": "07", "site": "/srv"}


def known(name):
    if name not in KNOWN:
        raise HapteraError(f"unknown placeholder {name}", do="see")
    return KNOWN[name]


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("plain", "plain"),
        ("10.1.{rack}.{n}", "10.1.2.07"),
        ("{1}-{2}", "2-07"),
        ("{{{name}}} {{n}}", "{rack2n07} {n}"),
        ("{n:d}", "7"),
        ("{n:03}", "007"),
        ("{n+100}", "107"),
        ("{ ( rack - 1 ) * 40 + n }", "47"),
        ("{(rack-1)*40+n:04d}", "0047"),
        ("{n//4}.{n%4}", "1.3"),
        ("02:00:{rack:02x}:{n+250:02x}", "02:00:02:101"),
        ("{rack*13:X}", "1A"),
        ("{7-2-1} {2*3-4*1} {20//2*5}", "4 2 50"),
        ("{1:02}", "02"),
    ],
)
def test_a_hole_is_filled_with_a_name_or_what_it_counts(text, filled):
    assert fill(text, known) == filled


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a}b", "unmatched brace at character 2"),
        ("{", "unmatched brace at character 1"),
        ("{x}", "unknown placeholder x"),
        ("{x+1}", "unknown placeholder x"),
        ("{}", "{} cannot be read"),
        ("{n+}", "{n+} cannot be read"),
        ("{+n}", "{+n} cannot be read"),
        ("{n 1}", "{n 1} cannot be read"),
        ("{(n}", "{(n} cannot be read"),
        ("{n)}", "{n)} cannot be read"),
        ("{n.x.y}", "{n.x.y} cannot be read"),
        ("{n:3}", "{n:3} cannot be read"),
        ("{n:f}", "{n:f} cannot be read"),
        ("{n+1:02:x}", "{n+1:02:x} cannot be read"),
        ("{site+1}", "{site} is '/srv' here, no number"),
        ("{site:d}", "{site} is '/srv' here, no number"),
        ("{n-8}", "{n-8} is -1 here"),
        ("{n//(rack-2)}", "{n//(rack-2)}: division by zero"),
        ("{n%0}", "{n%0}: division by zero"),
        ("{9999999999*9999999999}", "a number in a placeholder does not fit 64 bits"),
        ("{" + "(" * 199 + "}", "{((((((((((((((("),
        ("{" + "1+" * 200 + "1}", "{1+1+1+1"),
    ],
)
def test_what_cannot_be_filled_is_told(text, what):
    with pytest.raises(HapteraError) as raised:
        fill(text, known)
    assert raised.value.what.startswith(what)
    assert raised.value.do


sums = st.recursive(
    st.sampled_from(["rack", "n"]) | st.integers(0, 50).map(str),
    lambda inner: (
        st.builds("{}{}{}".format, inner, st.sampled_from(["+", "-", "*", " // ", "% "]), inner)
        | inner.map("({})".format)
    ),
    max_leaves=8,
)


@given(sums)
def test_what_is_counted_is_what_python_counts(text):
    try:
        wanted = eval(text, {}, {"rack": 2, "n": 7})
    except ZeroDivisionError:
        wanted = None
    if wanted is None or wanted < 0:
        with pytest.raises(HapteraError):
            fill(f"{{0+{text}}}", known)
    else:
        assert fill(f"{{0+{text}}}", known) == str(wanted)


@given(st.text("{}ab:+-*/%()019 ", max_size=20))
def test_any_text_is_filled_or_a_told_error(text):
    try:
        fill(text, known)
    except HapteraError as error:
        told = (error.what, error.do)
        assert all(told), told


def test_the_numbers_of_a_name_are_known_by_order_and_by_their_letters():
    assert dimensions("login") == {}
    assert dimensions("gpu-12.c3") == {"1": "12", "2": "3", "gpu": "12", "c": "3"}
    assert dimensions("n1n02") == {"1": "1", "2": "02"}
    assert dimensions("7up") == {"1": "7"}
