"""The API's own description: whole, closed, and kept beside the documentation."""

import json

import pytest

from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend
from tests.lab.rig import ROOT

FILE = ROOT / "docs" / "reference" / "openapi.json"


@pytest.fixture
def told():
    app = app_of(FakeBackend())
    return ask(app, "GET", "/v1/openapi.json").json


def schemas(part):
    """All schemas of a document, wherever they stand."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "schema":
                yield value
            if key in ("schemas", "properties"):
                yield from value.values()
            if key in ("items", "additionalProperties") and isinstance(value, dict):
                yield value
            if key in ("anyOf", "oneOf", "allOf"):
                yield from value
            yield from schemas(value)
    elif isinstance(part, list):
        for value in part:
            yield from schemas(value)


def test_the_file_beside_the_documentation_is_what_is_served(told):
    assert json.loads(FILE.read_text()) == told, "make it anew: python -m tests.api.test_openapi"


def test_no_schema_is_empty_or_open(told):
    for schema in schemas(told):
        assert schema, "an empty schema allows anything"
        if schema.get("type") == "object":
            assert "additionalProperties" in schema, schema


def test_all_that_is_named_says_what_it_is(told):
    for path, operations in told["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], (method, path)
            for parameter in operation["parameters"]:
                assert parameter["description"], (method, path, parameter["name"])


def test_what_a_scope_is_needed_for_says_so_and_how_it_is_refused(told):
    for operations in told["paths"].values():
        for operation in operations.values():
            refused = {"401", "403"} <= operation["responses"].keys()
            assert refused == bool(operation["security"]) == ("x-scope" in operation)


if __name__ == "__main__":
    app = app_of(FakeBackend())
    FILE.write_text(json.dumps(ask(app, "GET", "/v1/openapi.json").json, indent=1) + "\n")
