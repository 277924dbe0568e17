"""Where an answer goes: a disk that is full, a terminal that wants no colours."""

import os
import pty
import re
import subprocess

import pytest

from haptera.cli.main import REFUSED, USAGE
from haptera.model.answers.views import Condition
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from tests.api.serving import serving
from tests.cli.rig import command, environment, told, typed
from tests.cli.test_commands import point_at
from tests.lab.rig import WAIT_S_MAX

RED = "\x1b[31m"


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_an_answer_that_does_not_fit_is_an_error_not_a_traceback(form):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command("module", "list", "-o", form),
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=WAIT_S_MAX,
        )
    what = "the answer cannot be written: No space left on device"
    error = told(what, "standard output", "make room, then ask again")
    assert (done.returncode, done.stderr) == (REFUSED, error)


@pytest.mark.parametrize(
    ("wishes", "red"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_a_terminal_has_colours_unless_they_are_not_wanted(wishes, red):
    kept = {name: text for name, text in environment().items() if name != "NO_COLOR"}
    ours, theirs = pty.openpty()
    subprocess.run(
        command("check", "none.yaml"),
        env={**kept, "TERM": "xterm", **wishes},
        stderr=theirs,
        timeout=WAIT_S_MAX,
    )
    os.close(theirs)
    errors = os.read(ours, 4096).decode()
    os.close(ours)
    assert "none.yaml cannot be read" in errors
    assert (RED in errors) is red


def on_terminal(columns, *words):
    """What a terminal that is so wide shows of an answer."""
    ours, theirs = pty.openpty()
    subprocess.run(
        command(*words), env={**os.environ, "COLUMNS": str(columns)}, stdout=theirs, check=True
    )
    os.close(theirs)
    shown = os.read(ours, 4096).decode().replace("\r\n", "\n")
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;]*m", "", shown)


@pytest.mark.net
def test_reasons_are_wrapped_between_words(monkeypatch, tmp_path):
    node = node_id("n1")
    with serving(Declare(node, {}, "site"), SetDesired(node, "power", "on", "site")) as cluster:
        point_at(cluster.url, "read-token", monkeypatch, tmp_path)
        reason = "labnode.switch_on: the chassis interlock is open, so nothing begins"
        cluster.do(cluster.backend.say, node, condition=Condition.STUCK, why=reason)
        assert on_terminal(60, "status") == (
            "WHAT  CONDITION  COUNT  ON  REASON\n"
            "node  stuck      1      n1  labnode.switch_on: the chassis\n"
            "                            interlock is open, so nothing\n"
            "                            begins\n"
        )
        whole = f"node  stuck      1      n1  {reason}\n"
        assert on_terminal(60, "status", "-o", "wide").endswith(whole)
        assert on_terminal(60, "why") == (
            "node:n1 is stuck for 1.5 s: labnode.switch_on: the chassis\n"
            "  interlock is open, so nothing begins\n"
        )


def test_a_command_that_is_mistyped_is_answered_with_the_one_that_was_meant(tmp_path):
    code, out, errors = typed("stauts", folder=tmp_path)
    assert (code, out) == (USAGE, "")
    assert errors.splitlines()[-1].startswith("Error: No such command 'stauts'. Did you mean")
    assert "'status'" in errors
    code, _, errors = typed("module", "chekc", folder=tmp_path)
    assert errors.splitlines()[-1] == "Error: No such command 'chekc'. Did you mean 'check'?"
