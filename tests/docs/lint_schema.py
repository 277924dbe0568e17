"""The published schema of what the lint finds: made of the code's types.

    python -m tests.docs.lint_schema

writes it anew.
"""

import json
from pathlib import Path
from typing import Any

import msgspec

from haptera.cli.lint_forms import LintForm

FILE = Path(__file__).resolve().parents[2] / "docs/reference/lint.schema.json"


def text() -> str:
    """The schema as the code's types have it."""
    _, components = msgspec.json.schema_components([LintForm], ref_template="#/$defs/{name}")
    whole: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What haptera's lint finds",
        "$ref": "#/$defs/LintForm",
        "$defs": components,
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
