"""Each command that a page quotes can be typed: it is there, and takes what it is given.

What such commands answer is held to the page by the tests of the pages that show it.
"""

import re

import click
import pytest

from tests.cli.test_help import WITHIN, calls, parsed
from tests.docs.pages import PAGES, in_sentences, name_of, sessions

COMMENT = re.compile(r"\s+#\s.*")
# In its place an example stands: a NAME of the page's own, or what a page leaves out.
STANDS_FOR = re.compile(r"\b[A-Z][A-Z_]*\b|…|\[.+\]")


def quoted(page):
    typed = [one.command for some in sessions(page).values() for one in some]
    for line in [*typed, *in_sentences(page)]:
        yield WITHIN.sub("40", COMMENT.sub("", line))


def wrong(line):
    """What click says of a line's calls; None where they can be typed.

    A page may name a command or an option without what it takes, or with what stands for that.
    """
    for call in calls(line):
        try:
            parsed(call)
        except click.exceptions.Exit:
            continue  # its help, or its version
        except click.NoSuchOption as error:
            return f"{line}: {error.format_message()}"
        except (click.MissingParameter, click.BadOptionUsage):
            continue
        except click.UsageError as error:
            if STANDS_FOR.search(line) is None:
                return f"{line}: {error.format_message()}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_on_a_page_can_be_typed(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert [said for line in quoted(page) if (said := wrong(line))] == []


def test_many_commands_are_quoted():
    assert sum(len([*quoted(page)]) for page in PAGES) > 150


def test_a_command_that_is_not_there_is_found():
    assert wrong("haptera statsu") is not None
    assert wrong("haptera status --chek SELECTOR") is not None
    assert wrong("haptera status node:n1 | grep stuck") is None
