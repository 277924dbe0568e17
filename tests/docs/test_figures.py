"""The figures on pages: a comment behind one names constants of the code, and what they are.

It waits for at most 10 s. <!-- core.preview.preview: PREVIEW_WITHIN_NS = 10e9 -->
"""

import ast
import re
from importlib import import_module
from operator import attrgetter

import pytest

from haptera.core.act.oscillation import ADVICE
from haptera.core.views.unblock import NO_WAY
from haptera.planner.plan_query import EXPANSIONS_APART_MAX
from haptera.planner.reasons.reason import gave_up
from tests.docs.pages import PAGES, ROOT, name_of

FIGURE = re.compile(r"<!-- ([\w.]+): (\w[\w.]* = .*?) -->")
FIGURES = [
    (name_of(page), *found)
    for page in PAGES
    for found in FIGURE.findall(page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("page", "module", "said"), FIGURES)
def test_a_figure_on_a_page_is_that_of_the_code(page: str, module: str, said: str) -> None:
    constants = import_module(f"haptera.{module}")
    for name, value in re.findall(r"([\w.]+) = ((?:\(.*?\)|[^,])+)", said):
        there = attrgetter(name)(constants)
        assert there == ast.literal_eval(value), f"{page}: {name} is {there}"


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("explain/acting.md", [f"(3 times in 30 s); {ADVICE}\n"]),
        ("explain/searching.md", [f"| `{gave_up(EXPANSIONS_APART_MAX).text}` |"]),
        ("reference/why.md", [f"| {needs} |" for needs in NO_WAY.values()]),
    ],
)
def test_what_a_page_quotes_is_what_the_code_says(page: str, texts: list[str]) -> None:
    written = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert [one for one in texts if one not in written] == []
