"""The page on selectors: what it shows is read and can be so."""

import re
from pathlib import Path

import pytest

from haptera.kinds.meaning import check_selector
from haptera.model.answers.views import Condition
from haptera.model.errors import HapteraError
from haptera.selectors import nodeset, selector
from haptera.selectors.selector_ast import OLDER, StateLayer

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/selectors.md").read_text("utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_each_selector_of_the_table_can_be_meant() -> None:
    shown = re.findall(r"^\| `(.+?)` \|", section("Forms"), re.MULTILINE)
    commands = re.findall(r"^haptera .*?'(.*?)'", PAGE, re.MULTILINE)

    assert len(shown) > 15
    for text in (*shown, *commands):
        check_selector(selector.parse_selector(text))


@pytest.mark.parametrize("text", ["service:web and rack=r1"])
def test_what_it_says_is_refused_is_refused(text: str) -> None:
    assert f"`{text}`" in PAGE
    with pytest.raises(HapteraError):
        check_selector(selector.parse_selector(text))


def test_the_words_are_those_of_the_code() -> None:
    assert ", ".join(Condition) in PAGE
    grammar = section("Grammar")
    assert all(f'"{one}."' in grammar for one in StateLayer if one)
    assert all(f'"{one}"' in grammar for one in (*OLDER, *nodeset.SetOperator))
