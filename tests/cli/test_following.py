"""`logs --follow`: each line that is added to a log is shown once, also after it began anew."""

import asyncio
import os
import signal
import subprocess

import pytest

from haptera.cli.main import OK, REFUSED, USAGE, run
from haptera.model.changes import Declare
from haptera.model.entity import EntityId, node_id
from haptera.model.token_scope import Scope
from haptera.runtime.identity.tokens import Bearer
from tests.api.serving import WITHIN_S, serving
from tests.cli.rig import command
from tests.cli.test_commands import point_at

WEB = EntityId("service", "web", "n1")


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
        assert typed.stdout.readline() == "two\n"
        typed.send_signal(signal.SIGINT)
        assert (typed.wait(WITHIN_S), typed.stdout.read(), typed.stderr.read()) == (OK, "", "")


@pytest.mark.net
@pytest.mark.slow
def test_a_log_that_cannot_be_had_is_asked_for_again_and_one_that_began_anew_is_told(cluster):
    with following("-f") as typed:
        assert typed.stdout.readline() == "one\n"
        cluster.do(cluster.backend.logs.pop, WEB)
        assert typed.stderr.readline() == f"error: {WEB} has no log yet\n"
        writes(cluster, b"afresh\n")
        assert typed.stdout.readline() == "afresh\n"
        typed.send_signal(signal.SIGINT)
        assert typed.wait(WITHIN_S) == OK
        assert "error:" not in (said := typed.stderr.read())
        assert said.endswith("some lines may be missing\n")


@pytest.mark.net
@pytest.mark.slow
def test_who_may_not_ask_any_more_is_told_and_asks_no_more(cluster, monkeypatch, tmp_path):
    minted = asyncio.run(cluster.backend.tokens.mint(Bearer("eve", Scope.READ), 60))
    point_at(cluster.url, minted.text, monkeypatch, tmp_path)
    with following("-f") as typed:
        assert typed.stdout.readline() == "one\n"
        cluster.do(cluster.backend.tokens.minted.clear)
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
