"""`logs --follow`: what is added to a log is shown, each line once, as long as its end overlaps."""

import asyncio
import os
import signal
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.cli.main import OK, REFUSED, USAGE, run
from haptera.cli.output.following import added
from haptera.model.changes import Declare
from haptera.model.entity import EntityId, node_id
from haptera.model.token_scope import Scope
from haptera.runtime.identity.tokens import Bearer
from tests.api.serving import WITHIN_S, serving
from tests.cli.rig import command
from tests.cli.test_commands import point_at

WEB = EntityId("service", "web", "n1")
# Of a log's end, in characters; each chunk leaves some whole lines of the end before it.
KEPT = 60
CHUNKS = st.lists(st.lists(st.text("ab", max_size=5), max_size=3), min_size=1, max_size=8)
# A few letters, so that ends agree often.
ENDS = st.text("ab\n", max_size=12)


def plain(last, text):
    """What `added` gives, from the longest part tried to the shortest."""
    if not last or last == text:
        return text.split("\n") if text != last else []
    for same in range(min(len(last), len(text)), 0, -1):
        if last.endswith(text[:same]):
            seen, more = text[:same], text[same:]
            if more.startswith("\n"):
                return more[1:].split("\n")
            return (seen.split("\n")[-1] + more).split("\n") if more else []
    return None


@given(ENDS, ENDS)
def test_what_is_added_begins_after_the_longest_part_that_agrees(last, text):
    assert added(last, text) == plain(last, text)


@given(CHUNKS)
def test_each_line_is_given_once_while_the_ends_overlap(chunks):
    lines = [f"<{number}>" for number in range(12)]
    last, shown = "\n".join(lines)[-KEPT:], [*lines]
    for words in chunks:
        lines += [f"<{len(lines) + number}>{word}" for number, word in enumerate(words)]
        text = "\n".join(lines)[-KEPT:]
        shown += added(last, text)
        last = text
    assert shown == lines


@pytest.mark.parametrize(
    ("last", "text", "more"),
    [
        ("one\ntw", "one\ntwo\nthree", ["two", "three"]),
        ("", "one", ["one"]),
        ("one", "two", None),
        ("gr\u00fcn\nrot", "\ufffdn\nrot\nblau", ["blau"]),
        ("one\ngr\ufffd", "one\ngr\u00fcn", ["gr\u00fcn"]),
    ],
    ids=["completed", "first", "anew", "cut in front", "cut at the end"],
)
def test_lines_and_characters_that_were_cut_are_given_whole(last, text, more):
    assert added(last, text) == more


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    with serving(Declare(node_id("n1"), {}, "site"), Declare(WEB, {}, "site")) as one:
        point_at(one.url, "read-token", monkeypatch, tmp_path)
        one.backend.logs[WEB] = b"zero\none\n"
        yield one


@pytest.mark.net
@pytest.mark.slow
@pytest.mark.parametrize("option", ["-f", "--follow", "-w", "--watch"])
def test_a_line_that_is_added_is_shown_until_it_is_interrupted(cluster, option):
    with following(option) as typed:
        assert typed.stdout.readline() == "one\n"
        writes(cluster, b"zero\none\ntwo\x1b[2J\n")
        assert typed.stdout.readline() == "two [2J\n"
        typed.send_signal(signal.SIGINT)
        assert (typed.wait(WITHIN_S), typed.stdout.read(), typed.stderr.read()) == (OK, "", "")


@pytest.mark.net
@pytest.mark.slow
def test_a_log_that_cannot_be_had_is_asked_for_again_and_one_that_began_anew_is_told(cluster):
    with following("-f") as typed:
        assert typed.stdout.readline() == "one\n"
        cluster.do(cluster.backend.logs.pop, WEB)
        assert typed.stderr.readline() == f"error: {WEB} has written nothing yet\n"
        writes(cluster, b"afresh\n")
        assert typed.stdout.readline() == "afresh\n"
        typed.send_signal(signal.SIGINT)
        assert typed.wait(WITHIN_S) == OK
        assert "error:" not in (said := typed.stderr.read())
        assert said.endswith("something may be missing\n")


@pytest.mark.net
@pytest.mark.slow
def test_who_may_not_ask_any_more_is_told_and_asks_no_more(cluster, monkeypatch, tmp_path):
    minted = asyncio.run(cluster.backend.mint_token(Bearer("eve", Scope.READ), 60))
    point_at(cluster.url, minted.text, monkeypatch, tmp_path)
    with following("-f") as typed:
        assert typed.stdout.readline() == "one\n"
        cluster.do(cluster.backend.minted.clear)
        assert typed.wait(WITHIN_S) == REFUSED
        assert "no valid token" in typed.stderr.read()


@pytest.mark.net
def test_only_lines_are_followed(cluster, capsys):
    assert run(["logs", "-f", str(WEB), "-o", "json"]) == USAGE
    assert "leave out -o" in capsys.readouterr().err


def following(option):
    words = command("logs", "-n", "1", option, str(WEB))
    pipe = subprocess.PIPE
    return subprocess.Popen(words, stdout=pipe, stderr=pipe, env=os.environ, text=True)


def writes(cluster, text):
    cluster.do(cluster.backend.logs.__setitem__, WEB, text)
