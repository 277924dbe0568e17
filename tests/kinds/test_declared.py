"""Kinds that a site declares: what they are, and what is none."""

import msgspec
import pytest

from haptera.kinds import KINDS
from haptera.kinds.declared.kind import KindTerms, kind_of
from haptera.model.declared.meaning import Meaning
from haptera.model.errors import HapteraError


def terms(**said):
    return msgspec.convert({"variables": {"light": ["off", "on"]}, **said}, KindTerms)


def test_a_declared_kind_has_what_its_terms_say_and_is_the_whole_clusters():
    lamp = kind_of("lamp", terms(desired={"hue": "text", "level": "number", "script": "code"}))
    light = lamp.variable("light")

    assert {str(value): number for value, number in light.numbers.items()} == {
        "unknown": 0,
        "off": 1,
        "on": 2,
    }
    assert lamp.of_cluster
    assert [one.meaning for one in lamp.plain] == [None, None, Meaning.COMMAND]


@pytest.mark.parametrize(
    ("name", "said", "what"),
    [
        ("node", {}, "comes with haptera"),
        ("job", {}, "comes with haptera"),
        ("a:b", {}, "is no kind"),
        ("lamp", {"variables": {"light": ["on", "on"]}}, "or one twice"),
        ("lamp", {"variables": {"light": ["unknown"]}}, "is no value"),
        ("lamp", {"variables": {"light": ["*"]}}, "is no value"),
        ("lamp", {"variables": {"light": []}}, "has no values"),
        ("lamp", {"desired": {"light": "text"}}, "declares twice"),
        ("lamp", {"desired": {"exec_path": "text"}}, "scope write may change"),
        ("lamp", {"serves": {"light": "red"}}, "cannot serve"),
        ("lamp", {"serves": {"hue": "on"}}, "cannot serve"),
        ("lamp", {"desired": {f"d{n}": "text" for n in range(65)}}, "at most"),
    ],
)
def test_what_can_be_no_kind_is_refused_with_what_to_do(name, said, what):
    with pytest.raises(HapteraError) as error:
        kind_of(name, terms(**said))
    assert what in str(error.value)


def test_declared_kinds_are_there_until_another_site_is_read():
    KINDS.declare({"lamp": kind_of("lamp", terms())})
    try:
        assert KINDS["lamp"].name == "lamp"
        assert "lamp" in [*KINDS]
    finally:
        KINDS.declare({})
    assert "lamp" not in KINDS
