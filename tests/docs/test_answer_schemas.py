"""The published schemas of answers are those of the code."""

import pytest

from tests.docs.answer_schemas import DO, FOLDER, PUBLISHED, text


@pytest.mark.parametrize("file", PUBLISHED)
def test_a_published_schema_is_that_of_the_code(file: str) -> None:
    assert (FOLDER / file).read_text(encoding="utf-8") == text(file), DO
