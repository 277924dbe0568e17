"""The published schema of problems and answers: made of the code's types, and what it means.

    python -m tests.docs.problem_schema

writes it anew. The checker knows the keywords that the schema uses, and fails at any other.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from haptera.planner.explain import problem_json as forms

FILE = Path(__file__).resolve().parents[2] / "docs/reference/problem.schema.json"
ANSWERS = ("ChainAnswer", "NoChainAnswer", "ErrorAnswer")
TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
# They say something to people only.
SILENT = {"title", "description", "default"}


def made() -> dict[str, Any]:
    """The schema as the code's types have it."""
    types = [forms.ProblemForm, forms.LookLink, forms.DoLink]
    types += [forms.ChainAnswer, forms.NoChainAnswer, forms.ErrorAnswer]
    _, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    components["Answer"] = {"oneOf": [{"$ref": f"#/$defs/{name}"} for name in ANSWERS]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A problem for haptera's planner; $defs/Answer is what it answers",
        "$ref": "#/$defs/ProblemForm",
        "$defs": components,
    }


def text() -> str:
    return json.dumps(made(), indent=2, ensure_ascii=False) + "\n"


def valid(value: object, name: str) -> bool:
    """Whether a value is what the published schema calls by this name."""
    return valid_by(value, FILE, name)


def valid_by(value: object, file: Path, name: str) -> bool:
    """The same, by any schema whose keywords are known here."""
    whole = json.loads(file.read_text(encoding="utf-8"))
    return _valid(value, {"$ref": f"#/$defs/{name}"}, whole["$defs"])


def _valid(value: Any, schema: dict[str, Any], defs: dict[str, Any]) -> bool:
    return all(
        keyword in SILENT or _holds(keyword, wanted, value, schema, defs)
        for keyword, wanted in schema.items()
    )


def _holds(
    keyword: str, wanted: Any, value: Any, schema: dict[str, Any], defs: dict[str, Any]
) -> bool:
    if keyword in PLAIN:
        return PLAIN[keyword](wanted, value)
    if keyword == "$ref":
        return _valid(value, defs[wanted.removeprefix("#/$defs/")], defs)
    if keyword in CHOICES:
        return CHOICES[keyword](sum(_valid(value, one, defs) for one in wanted))
    if keyword in OF_OBJECTS:
        return not isinstance(value, dict) or _fields(keyword, wanted, value, schema, defs)
    if keyword in OF_LISTS:
        return not isinstance(value, list) or _items(keyword, wanted, value, schema, defs)
    raise NotImplementedError(keyword)


def _is_of_type(wanted: str, value: Any) -> bool:
    return isinstance(value, TYPES[wanted]) and isinstance(value, bool) == (wanted == "boolean")


# A keyword says nothing of values of other types.
PLAIN: dict[str, Callable[[Any, Any], bool]] = {
    "type": _is_of_type,
    "enum": lambda wanted, value: value in wanted,
    "minimum": lambda wanted, value: not isinstance(value, int) or value >= wanted,
    "maximum": lambda wanted, value: not isinstance(value, int) or value <= wanted,
    "minLength": lambda wanted, value: not isinstance(value, str) or len(value) >= wanted,
    "maxLength": lambda wanted, value: not isinstance(value, str) or len(value) <= wanted,
    "minItems": lambda wanted, value: not isinstance(value, list) or len(value) >= wanted,
    "maxItems": lambda wanted, value: not isinstance(value, list) or len(value) <= wanted,
    "minProperties": lambda wanted, value: not isinstance(value, dict) or len(value) >= wanted,
}
CHOICES: dict[str, Callable[[int], bool]] = {
    "anyOf": lambda count: count > 0,
    "oneOf": lambda count: count == 1,
}
OF_OBJECTS = {"properties", "required", "additionalProperties"}
OF_LISTS = {"prefixItems", "items"}


def _items(
    keyword: str, wanted: Any, value: list[Any], schema: dict[str, Any], defs: dict[str, Any]
) -> bool:
    if keyword == "prefixItems":
        return all(_valid(one, each, defs) for one, each in zip(value, wanted, strict=False))
    rest = value[len(schema.get("prefixItems", ())) :]
    return not rest if wanted is False else all(_valid(one, wanted, defs) for one in rest)


def _fields(
    keyword: str, wanted: Any, value: dict[str, Any], schema: dict[str, Any], defs: dict[str, Any]
) -> bool:
    if keyword == "required":
        return set(wanted) <= set(value)
    if keyword == "properties":
        return all(_valid(value[key], wanted[key], defs) for key in value if key in wanted)
    others = [value[key] for key in value if key not in schema.get("properties", {})]
    return not others if wanted is False else all(_valid(one, wanted, defs) for one in others)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
