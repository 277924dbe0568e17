"""The page on health: its table of rules is that of the code.

Make it anew: python -m tests.docs.test_health_page
"""

import re
from pathlib import Path

from haptera.health.bundled import BUNDLED

FILE = Path(__file__).resolve().parents[2] / "docs/reference/health.md"
HEAD = "| rule | grade | mode | sensors | pipeline | source |\n|---|---|---|---|---|---|\n"


def rows() -> str:
    cells = (
        (f"`{one.name}`", one.grade, one.mode, f"`{one.sensors}`", f"`{one.pipeline}`", one.source)
        for one in BUNDLED
    )
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in cells
    )


def made(text: str) -> str:
    return re.sub(f"({re.escape(HEAD)})(?:\\|.*\n)*", lambda found: found[1] + rows(), text)


def test_each_bundled_rule_is_on_the_page_with_its_source() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert made(text) == text, "python -m tests.docs.test_health_page"
    assert rows() in text


if __name__ == "__main__":
    FILE.write_text(made(FILE.read_text(encoding="utf-8")), encoding="utf-8")
