"""The published schemas of answers are those of the code."""

import pytest

from tests.cli.test_help import EVERY
from tests.docs.answer_schemas import ANSWERS, DO, FOLDER, PUBLISHED, VERBS, text


@pytest.mark.parametrize("file", [*PUBLISHED, VERBS])
def test_a_published_schema_is_that_of_the_code(file: str) -> None:
    assert (FOLDER / file).read_text(encoding="utf-8") == text(file), DO


def test_each_verb_that_prints_json_has_a_schema() -> None:
    options = {
        " ".join(path): {name: one for one in command.params for name in one.opts}
        for path, command in EVERY.items()
    }
    printing = {
        verb
        for verb, some in options.items()
        if "--output" in some and "json" in getattr(some["--output"].type, "choices", ())
    }
    assert printing == ANSWERS.keys() | {"graph", "module lint", "module check"}
