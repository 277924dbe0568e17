"""The published schemas of what commands print as JSON: made of the code's types.

    python -m tests.docs.answer_schemas

writes them anew.
"""

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.cli.commands.module.check import CheckForm
from haptera.cli.output.findings.lint_forms import LintForm
from haptera.cli.verb import answers_of
from haptera.model.answers.graph import DrawingView
from tests.cli.test_help import EVERY

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs/reference"
DO: Final = "write it anew: python -m tests.docs.answer_schemas"
LINT, GRAPH, MODULE_CHECK = "lint.schema.json", "graph.schema.json", "module-check.schema.json"
VERBS: Final = "answers.schema.json"
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
PUBLISHED: Final[dict[str, tuple[type[msgspec.Struct], str]]] = {
    LINT: (LintForm, "What `haptera module lint -o json` prints"),
    GRAPH: (DrawingView, "What `haptera graph -o json` prints"),
    MODULE_CHECK: (CheckForm, "What `haptera module check -o json` prints"),
}
# What a verb can answer, where it is not published by itself.
ANSWERS: Final[dict[str, tuple[Any, ...]]] = {
    " ".join(path): answers_of(verb)
    for path, verb in EVERY.items()
    if answers_of(verb) and answers_of(verb) not in [(shape,) for shape, _ in PUBLISHED.values()]
}


def made(file: str) -> dict[str, Any]:
    """The schema that this file should hold."""
    shape, title = PUBLISHED[file]
    _, components = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    return {
        "$schema": DIALECT,
        "title": title,
        "$ref": f"#/$defs/{shape.__name__}",
        "$defs": components,
    }


def made_of_verbs() -> dict[str, Any]:
    """The schema of all other answers, each called as its verb, with `-` for a space."""
    shapes = [one for some in ANSWERS.values() for one in some]
    told, components = msgspec.json.schema_components(shapes, ref_template="#/$defs/{name}")
    left = iter(told)
    verbs = {
        verb.replace(" ", "-"): {"anyOf": [next(left) for _ in some]}
        for verb, some in ANSWERS.items()
    }
    title = "What commands print with `-o json`: $defs has each by its verb"
    return {"$schema": DIALECT, "title": title, "$defs": {**verbs, **components}}


def text(file: str) -> str:
    schema = made_of_verbs() if file == VERBS else made(file)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in (*PUBLISHED, VERBS):
        (FOLDER / name).write_text(text(name), encoding="utf-8")
