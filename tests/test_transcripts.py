"""Whole sessions of the command line, typed anew, and quoted in the tour as they are."""

import re

import pytest

from tests.lab.rig import ROOT
from tests.transcripts.playing import commands, named, play, read, transcripts

PAGES = [ROOT / "docs/tutorial/tour.md"]
BLOCK = re.compile(r"^```console\n(\$ .*?)^```$", re.DOTALL | re.MULTILINE)
LEFT_OUT = "…"


@pytest.mark.net
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(480)
@pytest.mark.parametrize("path", transcripts(), ids=lambda path: path.stem)
def test_a_session_is_as_its_transcript_says(path, tmp_path):
    """Make it anew, and read what changed: python -m tests.transcripts NAME."""
    session = read(path)
    assert str(play(session, tmp_path)) == str(session) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_what_a_page_quotes_was_written_so(path):
    """A page may leave out all of an output, or, with a line …, some of it."""
    written = {}
    for one in (one for session in map(read, transcripts()) for one in session.typed):
        written.setdefault(one.command, []).append(one.output)
    for block in BLOCK.findall(path.read_text(encoding="utf-8")):
        for quoted in commands(block):
            assert quoted.command in written, f"type it in a transcript: {quoted.command}"
            output = named(quoted.output)
            assert any(quotes(output, one) for one in written[quoted.command]), quoted


def quotes(output, written):
    pieces = [re.escape(one) for one in output.split(f"{LEFT_OUT}\n")]
    return not output or re.fullmatch("(?:.*\n)*".join(pieces), written) is not None


def test_quotes_are_told_from_what_was_never_written():
    assert quotes("one\ntwo\n", "one\ntwo\n")
    assert quotes("", "one\n")
    assert quotes("one\n…\nthree\n", "one\ntwo\nthree\n")
    assert not quotes("one\n", "one\ntwo\n")
    assert not quotes("one\n…\nfour\n", "one\ntwo\nthree\n")
