"""The files that an addition touches besides its own, counted as CONTRIBUTING.md has them."""

import re
from collections import defaultdict
from pathlib import Path

from haptera.modules import BUNDLED
from haptera.rest import endpoints
from haptera.rest.endpoint import Endpoint
from tests.cli.test_help import EVERY

ROOT = Path(__file__).parents[1]
# Without examples, and without what a verb was called before.
LEFT_OUT = re.compile(r"^.*(?:>>>|former=).*$", re.MULTILINE)
SOURCES = {
    str(path.relative_to(ROOT)): LEFT_OUT.sub("", path.read_text())
    for top in ("src", "tests", "tools")
    for path in (ROOT / top).rglob("*.py")
}
# What answers it and what calls it; it is also in docs/reference/rest.md and openapi.json.
ROUTE_FILES_MAX = 2
# The table of verbs; it is also in docs/reference/cli.md and answers.schema.json.
VERB_FILES_MAX = 1
MODULE_FILES_MAX = 4
# Whose processes outlive an agent: the daemon and other modules know these until what keeps
# processes has a room of its own below the modules.
KEEPERS = {"image", "jobs", "service", "system"}


def naming(pattern: str) -> dict[str, set[str]]:
    """The files in which each thing is named that the pattern finds."""
    found: dict[str, set[str]] = defaultdict(set)
    for file, text in SOURCES.items():
        for name in re.findall(pattern, text):
            found[name].add(file)
    return found


def test_a_route_is_named_by_what_answers_it_and_what_calls_it() -> None:
    routes = {name for name, one in vars(endpoints).items() if isinstance(one, Endpoint)}
    files = {
        name: some - {"tests/client/test_calls.py", "tests/attacks/any_value.py"}
        for name, some in naming(r"\bendpoints\.([A-Z_]+)\b").items()
    }
    assert routes <= files.keys() | {"OPENAPI"}
    assert {
        one: files[one] for one in routes & files.keys() if len(files[one]) > ROUTE_FILES_MAX
    } == {}


def test_a_route_has_its_path_in_one_place() -> None:
    paths = {one.path for one in vars(endpoints).values() if isinstance(one, Endpoint)}
    named = naming(r'"(/(?:v1|metrics)[^"]*)"')
    source = {path: {one for one in named[path] if one.startswith("src/")} for path in paths}
    assert {path: some for path, some in source.items() if len(some) > 1} == {}


def test_a_verb_is_named_in_one_table() -> None:
    files = naming(r'"(haptera\.cli\.commands\.[\w.]+):\w+"')
    places = {one.callback.__module__ for one in EVERY.values()}
    assert {one: files[one] for one in places if len(files[one]) > VERB_FILES_MAX} == {}


def test_a_module_is_named_in_few_files_besides_its_own() -> None:
    named = naming(r"\bhaptera\.modules\.(\w+)")
    for module in BUNDLED.keys() - KEEPERS:
        own = f"src/haptera/modules/{module}"
        files = {one for one in named[module] if one.startswith("src/") and own not in one}
        assert len(files) <= MODULE_FILES_MAX, (module, files)
