"""The published schema of drawings, made of the code's types.

    python -m tests.docs.graph_schema

writes it anew.
"""

import json
from typing import Any

import msgspec

from haptera.model.graph import DrawingView
from tests.docs import problem_schema

FILE = problem_schema.FILE.with_name("graph.schema.json")


def made() -> dict[str, Any]:
    """The schema as the code's types have it."""
    _, components = msgspec.json.schema_components([DrawingView], ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What `haptera graph -o json` prints",
        "$ref": "#/$defs/DrawingView",
        "$defs": components,
    }


def text() -> str:
    return json.dumps(made(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
