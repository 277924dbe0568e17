"""The published JSON Schema of site files: it takes what is read, and no other shape."""

import copy
import json
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from haptera.cli.main import run
from haptera.model.errors import InputError
from haptera.site import parse_site
from haptera.site.lint.schema import schema
from haptera.site.syntax.tree import Errors, plain_data
from haptera.site.syntax.yaml_tree import read_yaml
from tests.site.written import as_json, sites

jsonschema = pytest.importorskip(
    "jsonschema", reason="jsonschema is not installed: pip install -r requirements-dev.txt"
)
ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs/reference/site.schema.json"
SCHEMA = json.loads(FILE.read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_published_schema_is_that_of_the_code(capsys):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)

    assert schema() == SCHEMA, "haptera site schema > docs/reference/site.schema.json"
    assert run(["site", "schema"]) == 0
    assert capsys.readouterr().out == FILE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").rglob("site.yaml")), ids=lambda path: path.parent.name
)
def test_the_examples_fit_the_schema(path):
    # As an editor reads YAML 1.2, in which `on` is a text.
    data = plain_data(read_yaml(path.read_text(encoding="utf-8"), "site.yaml", Errors()))

    assert [error.message for error in VALIDATOR.iter_errors(data)] == []


def places(data, path=()):
    """Each mapping and list of a site, with its path."""
    if isinstance(data, dict):
        yield path
        for key, one in data.items():
            yield from places(one, (*path, key))
    elif isinstance(data, list):
        yield path
        for at, one in enumerate(data):
            yield from places(one, (*path, at))


def at(data, path):
    for key in path:
        data = data[key]
    return data


# What a mapping with names of people's own takes any key for.
NAMED = {("groups",), ("profiles",), ("nodes",), ("services",), ("desired",), ("budgets",)}


def takes_any_key(path):
    return path in NAMED or path[-1] in ("settings", "modules", "services")


@pytest.mark.timeout(480)
@given(sites(), st.data())
def test_it_takes_what_is_read_and_refuses_what_has_another_shape(data, draw):
    accepted = True
    try:
        parse_site([as_json(data)], {"site": "/srv"})
    except InputError as error:
        accepted = False
        event(f"because {error.what[:30]}")
    event(f"accepted {accepted}")
    if accepted:
        assert [error.message for error in VALIDATOR.iter_errors(data)] == []

    wrong = copy.deepcopy(data)
    path = draw.draw(
        st.sampled_from([one for one in places(data) if not one or one[-1] != "settings"])
    )
    inside = at(wrong, path)
    if isinstance(inside, dict) and not takes_any_key(path or ("",)) and draw.draw(st.booleans()):
        inside["bogus"] = draw.draw(st.sampled_from(["x", {}, []]))
    elif path:
        at(wrong, path[:-1])[path[-1]] = draw.draw(st.sampled_from([7, [["x"]], True]))
    else:
        wrong = draw.draw(st.sampled_from([[], 7, "cluster"]))
    event(f"wrong at depth {len(path)}")
    with pytest.raises(InputError):
        parse_site([as_json(wrong)], {"site": "/srv"})
    assert not VALIDATOR.is_valid(wrong)
