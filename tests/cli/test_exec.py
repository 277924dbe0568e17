"""`haptera exec`: what a command writes and its status, from a parent's API to the terminal."""

import os
import signal
import subprocess

import pytest

from haptera.cli.main import INTERRUPTED, USAGE, run
from haptera.model.changes import Declare
from haptera.model.entity import EntityId, node_id
from haptera.rest.exec import STDIN_BYTES_MAX, WITHIN_S_DEFAULT
from haptera.runtime.identity.tokens import ApiToken, Bearer, Scope
from haptera.runtime.network.peer_messages import ExecAsked, ExecTold, Unable
from tests.api.serving import WITHIN_S, serving
from tests.cli.rig import command, environment
from tests.cli.test_commands import point_at

pytestmark = pytest.mark.net

N1, LOGIN = node_id("n1"), EntityId("system", "login", "n1")
EVERY_BYTE = bytes(range(256))


@pytest.fixture
def parent(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with serving(Declare(N1, {}, "site"), Declare(LOGIN, {}, "site")) as one:
        point_at(one.url, "exec-token", monkeypatch, tmp_path)
        one.backend.comes_of = [ExecTold(status=0)]
        yield one


def typed(*words, given=None):
    """The exit status of `haptera exec`, and what it wrote to each, in bytes."""
    done = subprocess.run(
        command("exec", *words), input=given, capture_output=True, timeout=WITHIN_S
    )
    return done.returncode, done.stdout, done.stderr


def test_what_a_command_writes_and_its_status_are_those_of_haptera_exec(parent):
    parent.backend.comes_of = [
        ExecTold(stdout=EVERY_BYTE),
        ExecTold(),
        ExecTold(stderr=b"\xff!"),
        ExecTold(status=37),
    ]
    assert typed("n1/login", "--", "ls", "-l", "a\nb") == (37, EVERY_BYTE, b"\xff!")
    assert typed("-i", "--within", "1m", "n1", "cat", given=EVERY_BYTE)[0] == 37
    assert typed("n1", "sed", "-i", "--", "s/a/b/")[0] == 37
    assert parent.backend.executed == [
        ExecAsked(LOGIN, ("ls", "-l", "a\nb"), WITHIN_S_DEFAULT),
        ExecAsked(N1, ("cat",), 60, EVERY_BYTE),
        ExecAsked(N1, ("sed", "-i", "--", "s/a/b/"), WITHIN_S_DEFAULT),
    ]
    # What it read and wrote is nowhere.
    assert [(one.who, one.what) for one in parent.backend.noted] == [
        ("user:kim", 'exec system:login@n1 ["ls","-l","a\\nb"]'),
        ("user:kim", 'exec node:n1 ["cat"]'),
        ("user:kim", 'exec node:n1 ["sed","-i","--","s/a/b/"]'),
    ]


def test_what_haptera_could_not_run_or_lost_is_no_status_of_the_command(parent, capfdbinary):
    def said(*words):
        code = run(["exec", *words])
        out, errors = capfdbinary.readouterr()
        assert (code, out) == (255, b""), (code, out, errors)
        return errors.decode()

    assert "there is no node:n7" in said("n7", "true")
    assert "there is no system:db@n1" in said("n1/db", "true")
    assert "nothing can be run in service:web@n1" in said("service:web@n1", "true")
    assert "a command cannot run for 2d" in said("--within", "2d", "n1", "true")
    long = typed("-i", "n1", "cat", given=b"x" * (STDIN_BYTES_MAX + 1))
    assert (long[0], b"more than 524288 bytes" in long[2]) == (255, True)
    assert "the command has 20005 bytes" in said("n1", "echo", "x" * 19_999)
    assert parent.backend.executed == []
    parent.backend.comes_of = [Unable("system:login@n1 does not run")]
    refused = said("n1/login", "true")
    assert "system:login@n1 does not run" in refused
    assert "see how it is: haptera why system:login@n1" in refused
    parent.backend.comes_of = [ExecTold(), Unable("the agent of n1 is gone")]
    assert "the agent of n1 is gone" in said("n1", "true")
    for words in (["n1"], ["n1", "--"], ["n1", "-i", "cat"]):
        assert run(["exec", *words]) == USAGE
    assert b"put -i before NODE" in capfdbinary.readouterr().err
    parent.backend.comes_of = [ExecTold(status=127, why="there is no command 'x'")]
    assert run(["exec", "n1", "x"]) == 127
    assert capfdbinary.readouterr() == (b"", b"haptera exec: there is no command 'x'\n")


def test_a_token_runs_commands_only_with_the_scope_and_within_its_limit(
    parent, monkeypatch, tmp_path
):
    rights = [
        (Bearer("eve", Scope.WRITE), 255),
        (Bearer("eve", Scope.EXEC), 0),
        (Bearer("eve", Scope.EXEC, "n1"), 0),
        (Bearer("eve", Scope.EXEC, "n2"), 255),
        (Bearer("eve", Scope.ADMIN), 0),
    ]
    for number, (bearer, status) in enumerate(rights):
        text = f"hp1.t{number}.secret"
        parent.backend.tokens.minted[text] = ApiToken(f"t{number}", bearer, b"", 1000.0, 4600.0)
        point_at(parent.url, text, monkeypatch, tmp_path)
        assert run(["exec", "n1", "true"]) == status, bearer


def test_ctrl_c_ends_the_command_there(parent):
    parent.backend.comes_of = [ExecTold(stdout=b"begun\n")]
    words = command("exec", "n1", "sleep", "600")
    with subprocess.Popen(words, env=environment(os.environ["HAPTERA_CLIENT"]), stdout=-1) as one:
        assert one.stdout.readline() == b"begun\n"
        one.send_signal(signal.SIGINT)
        assert one.wait(WITHIN_S) == INTERRUPTED
    while not parent.do(lambda: parent.backend.hung_up):
        pass


def test_a_command_ends_with_the_token_that_began_it(parent, monkeypatch, tmp_path):
    bearer = Bearer("eve", Scope.EXEC)
    parent.backend.tokens.minted["hp1.t1.secret"] = ApiToken("t1", bearer, b"", 1000.0, 4600.0)
    point_at(parent.url, "hp1.t1.secret", monkeypatch, tmp_path)
    parent.backend.comes_of = [ExecTold(), *[ExecTold(stdout=b"x" * 1_000_000)] * 100]
    words = command("exec", "n1", "yes")
    with subprocess.Popen(
        words, env=environment(os.environ["HAPTERA_CLIENT"]), stdout=-1, stderr=-1
    ) as one:
        one.stdout.read(1)
        parent.do(parent.backend.tokens.minted.clear)
        _, errors = one.communicate(timeout=WITHIN_S)
        assert one.returncode == 255
    assert b"your token is no longer valid" in errors
