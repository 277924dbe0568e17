"""The published schemas of what commands print as JSON: made of the code's types.

    python -m tests.docs.answer_schemas

writes them anew.
"""

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.cli.checking import CheckForm
from haptera.cli.lint_forms import LintForm
from haptera.model.graph import DrawingView

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs/reference"
DO: Final = "write it anew: python -m tests.docs.answer_schemas"
LINT, GRAPH, MODULE_CHECK = "lint.schema.json", "graph.schema.json", "module-check.schema.json"
PUBLISHED: Final[dict[str, tuple[type[msgspec.Struct], str]]] = {
    LINT: (LintForm, "What haptera's lint finds"),
    GRAPH: (DrawingView, "What `haptera graph -o json` prints"),
    MODULE_CHECK: (CheckForm, "What `haptera module check -o json` prints"),
}


def made(file: str) -> dict[str, Any]:
    """The schema that this file should hold."""
    shape, title = PUBLISHED[file]
    _, components = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "$ref": f"#/$defs/{shape.__name__}",
        "$defs": components,
    }


def text(file: str) -> str:
    return json.dumps(made(file), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in PUBLISHED:
        (FOLDER / name).write_text(text(name), encoding="utf-8")
