"""The page on imports: its tables have all tools, and all sorts of remarks."""

import re
from pathlib import Path

from haptera.cli.commands.site.import_ import import_from
from haptera.site.imports.remarks import RemarkSort

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/import.md").read_text("utf-8")


def test_the_tables_have_all_tools_and_sorts() -> None:
    firsts = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)

    assert firsts == [*import_from.commands, *RemarkSort]
