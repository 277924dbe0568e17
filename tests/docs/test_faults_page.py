"""The page on faults: each number has its row, each named test exists, each test has its row."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/explain/faults.md").read_text(encoding="utf-8")
# How many faults each catalogue has.
CATALOGUES = {"K": 12, "W": 19, "L": 20}
NUMBER = re.compile(r"[KWL]\d+")


def test_every_fault_of_every_catalogue_has_its_one_row() -> None:
    numbers = [row[0] for row in rows()]

    assert sorted(numbers) == sorted(
        f"{letter}{number}"
        for letter, count in CATALOGUES.items()
        for number in range(1, count + 1)
    )


def test_each_row_names_all_tests_that_name_its_fault() -> None:
    told = {(number, test) for test, sentence in shown() for number in NUMBER.findall(sentence)}

    assert told - named() == set()


def test_each_row_names_tests_that_there_are() -> None:
    there = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    }

    assert {number for number, _ in named()} == {row[0] for row in rows()}
    assert {test for _, test in named()} - there == set()


def test_each_test_says_first_what_the_original_did() -> None:
    silent = [test for test, sentence in shown() if not re.match(NUMBER, sentence)]

    assert silent == []


def rows() -> list[list[str]]:
    """The cells of each row that begins with a fault's number."""
    lines = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
    return [cells for cells in lines if NUMBER.fullmatch(cells[0])]


def named() -> set[tuple[str, str]]:
    """Each fault with each test that its row names."""
    return {(row[0], test) for row in rows() for test in re.findall(r"`(test_\w+)`", row[-1])}


def shown() -> list[tuple[str, str]]:
    """Each test of a fault, with what its docstring begins with, up to the colon."""
    return [
        (one.name, (ast.get_docstring(one) or "").partition(":")[0])
        for path in sorted((ROOT / "tests/faults").glob("test_*.py"))
        for one in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")
    ]
