"""The page on errors has each code, with its status and meaning.

Make its table anew: python -m tests.docs.test_errors_page
"""

import re
from pathlib import Path

from haptera.rest.error_codes import CODES

FILE = Path(__file__).resolve().parents[2] / "docs/reference/errors.md"
ROWS = re.compile(r"^(?:\| `[a-z-]+` \| .*\n)+", re.MULTILINE)


def rows():
    for code, one in CODES.items():
        status = "-" if one.status is None else f"{one.status.value}"
        yield f"| `{code}` | {status} | {one.means} |\n"


def test_each_code_is_told_with_its_status_and_meaning():
    text = FILE.read_text(encoding="utf-8")
    assert ROWS.search(text)[0] == "".join(rows()), "python -m tests.docs.test_errors_page"


if __name__ == "__main__":
    text = FILE.read_text(encoding="utf-8")
    FILE.write_text(ROWS.sub("".join(rows()), text), encoding="utf-8")
