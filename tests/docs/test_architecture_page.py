"""The page on the architecture: the limits that it names are those of the code."""

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (`[A-Z_]+` \(.*?) \| (.*?) \|", re.MULTILINE)
NAMED = re.compile(r"`([A-Z_]+)`(?: \(`([\w/]+\.py)`\))?")
LIMITS = [(NAMED.findall(names), value) for names, value in ROW.findall(PAGE)]


def numbers(file: Path) -> dict[str, int | None]:
    """The constants of a file; None where they are no plain number."""
    found: dict[str, int | None] = {}
    for one in ast.parse(file.read_text(encoding="utf-8")).body:
        target = one.target if isinstance(one, ast.AnnAssign) else None
        if isinstance(one, ast.Assign):
            target = one.targets[0]
        if isinstance(target, ast.Name) and isinstance(one, ast.Assign | ast.AnnAssign):
            value = one.value.value if isinstance(one.value, ast.Constant) else None
            found[target.id] = value if isinstance(value, int) else None
    return found


@pytest.mark.parametrize(("names", "value"), LIMITS, ids=[names[0][0] for names, _ in LIMITS])
def test_a_limit_is_where_the_page_says_and_what_it_says(
    names: list[tuple[str, str]], value: str
) -> None:
    # Of two names in one file, the file stands behind the second.
    file = names[-1][1]
    for name, own in names:
        there = numbers(ROOT / "src/haptera" / (own or file))
        assert name in there
        if (number := there[name]) is not None:
            assert f"{number:,}" in value


def test_most_limits_are_looked_at() -> None:
    assert len(LIMITS) > 10
