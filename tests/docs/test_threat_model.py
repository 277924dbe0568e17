"""What the threat model says holds names a test."""

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


def test_each_row_of_a_table_with_tests_names_one():
    said = [*rows()]
    assert len(said) > 60
    assert [told for told, names in said if not names] == []
