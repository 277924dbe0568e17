"""What the threat model says holds names a test, and all tests that it names exist."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/explain/threat-model.md"
NAMED = re.compile(r"`([^`]+)`")


def rows():
    """What comes of each attack, and the names in the last column of tables that have tests."""
    has_tests = False
    for line in PAGE.read_text().splitlines():
        if not line.startswith("|"):
            has_tests = False
        elif line.endswith("| test |"):
            has_tests = True
        elif has_tests and line.startswith("| "):
            *_, told, tests = line.removesuffix("|").split(" | ")
            yield told.strip(), NAMED.findall(tests)


def functions():
    for path in (ROOT / "tests").rglob("test_*.py"):
        for one in ast.walk(ast.parse(path.read_text())):
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                yield one.name


def test_all_tests_that_it_names_exist():
    known = {*functions()}
    named = [name for _, names in rows() for name in names]
    assert len(named) > 60
    assert [one for one in named if one not in known and not (ROOT / one).is_file()] == []


def test_each_row_of_a_table_with_tests_names_one():
    assert [told for told, names in rows() if not names] == []
