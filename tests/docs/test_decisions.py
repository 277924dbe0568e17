"""The index of design decisions: one row for each record, with its title and status."""

import re
from pathlib import Path

import pytest

DECISIONS = Path(__file__).resolve().parents[2] / "docs/decisions"
RECORDS = sorted(path for path in DECISIONS.rglob("*.md") if path.name != "README.md")
# Number, title, path, status.
ROW = re.compile(r"^\| (\d+) \| \[(.+?)\]\((\S+?)\) \| (.+?) \| \S.* \|$", re.MULTILINE)
HEADING = re.compile(r"# (\d+)\. (.+)")
# What follows the status on its line is prose.
STATUS = re.compile(r"Status: (in force(?:, amended by (\d+))?|superseded by (\d+))(?=[ .;:])")

Row = tuple[str, str, str, str]


def row_of(record: Path) -> Row:
    """The row that a record should have."""
    first, _, third, *_ = record.read_text(encoding="utf-8").splitlines()
    heading, status = HEADING.fullmatch(first), STATUS.match(third)
    assert heading, f"{record.name}: the first line is no numbered title: {first}"
    assert status, f"{record.name}: the third line is no status: {third}"
    return heading[1], heading[2], str(record.relative_to(DECISIONS)), status[1]


def rows() -> list[Row]:
    found: list[Row] = ROW.findall((DECISIONS / "README.md").read_text(encoding="utf-8"))
    return found


def test_the_index_has_each_record_once_with_its_title_and_status() -> None:
    assert sorted(rows(), key=lambda row: int(row[0])) == sorted(
        map(row_of, RECORDS), key=lambda row: int(row[0])
    )


def test_no_two_records_have_one_number() -> None:
    numbers = [int(path.name[:4]) for path in RECORDS]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_the_number_and_the_folder_of_a_record_agree_with_its_text(record: Path) -> None:
    number, _, path, status = row_of(record)
    assert int(record.name[:4]) == int(number)
    assert path.startswith("superseded/") == status.startswith("superseded")


@pytest.mark.parametrize("record", RECORDS, ids=lambda path: path.stem)
def test_a_later_record_amends_or_supersedes(record: Path) -> None:
    number, _, _, status = row_of(record)
    later = [int(one) for one in re.findall(r"\d+", status)]
    there = {int(path.name[:4]) for path in RECORDS}
    assert all(one > int(number) and one in there for one in later)
