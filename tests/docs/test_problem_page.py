"""The page on problems: its examples are answered as it says, its schema is the code's."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from haptera.planner.explain.problem_line import answer_line, explained_line
from tests.docs.problem_schema import FILE, text, valid

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/problem.md").read_text(
    encoding="utf-8"
)
# Of the first problem; what an example leaves out is as there.
GIVEN = ("observed", "remembered", "desired")


def blocks(title: str) -> dict[str, Any]:
    found = re.findall(rf"^```json {title} ([^\n]+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return {name: json.loads(block) for name, block in found}


PROBLEMS, ANSWERS, EXPLAINED = blocks("problem"), blocks("answer"), blocks("explained")


def whole(name: str) -> dict[str, Any]:
    first = next(iter(PROBLEMS.values()))
    parts = {key: value for key, value in first.items() if key not in GIVEN}
    return parts | PROBLEMS[name]


def test_each_example_has_its_answer() -> None:
    assert list(PROBLEMS) == list(ANSWERS)
    assert len(PROBLEMS) >= 15


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_example_is_answered_as_the_page_says(name: str) -> None:
    _, found = answer_line(json.dumps(whole(name)).encode())
    assert compared(found) == compared(ANSWERS[name])


@pytest.mark.parametrize("name", PROBLEMS)
def test_an_explained_answer_is_the_same_and_says_more(name: str) -> None:
    outcome, found = explained_line(json.dumps(whole(name)).encode())
    assert valid(found, "Answer")
    explained = found.pop("explained", None)
    assert (outcome, found) == answer_line(json.dumps(whole(name)).encode())
    assert explained == EXPLAINED.get(name, explained)


def compared(answer: dict[str, Any]) -> dict[str, Any]:
    """Without what is the planner's own affair: how many states it looked at."""
    return answer | {"expanded": 0}


@pytest.mark.parametrize("name", PROBLEMS)
def test_examples_are_of_the_published_form(name: str) -> None:
    assert valid(whole(name), "ProblemForm")
    assert valid(ANSWERS[name], "Answer")


def test_the_published_schema_is_that_of_the_code() -> None:
    told = "write it anew: python -m tests.docs.problem_schema"
    assert FILE.read_text(encoding="utf-8") == text(), told
