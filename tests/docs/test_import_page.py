"""The page on imports: its commands are typed, and answer what the page says."""

import re
from pathlib import Path

from haptera.cli.commands.site.import_ import import_from
from haptera.site.imports.found import GROUPS_MAX, NODES_MAX
from haptera.site.imports.remarks import RemarkSort
from haptera.site.imports.source import IMPORT_BYTES_MAX

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/import.md").read_text("utf-8")


def test_the_tables_have_all_tools_and_sorts() -> None:
    firsts = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)

    assert firsts == [*import_from.commands, *RemarkSort]


def test_the_limits_are_those_of_the_code() -> None:
    (line,) = re.findall(
        r"A file has (\d+) MiB at most, an import ([\d,]+) nodes and ([\d,]+) groups\.", PAGE
    )

    assert line == (str(IMPORT_BYTES_MAX // 2**20), f"{NODES_MAX:,}", f"{GROUPS_MAX:,}")
