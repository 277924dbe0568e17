"""The commands as a person types them, and what they answer."""

import io
import json
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress

import pytest

from haptera.cli.main import NOT_CONVERGED, OK, REFUSED, UNREACHABLE, run
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import SetDesired
from haptera.model.declared.desired_check import nearest
from tests.api.fake_backend import TOKENS
from tests.api.serving import WITHIN_S, serving
from tests.cli.clusters import HAPPENS, RACK, cluster_of, stuck
from tests.cli.rig import point_at, told, watching, without_waits

N1, N2, N3 = RACK

pytestmark = pytest.mark.net


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    with cluster_of("rack", monkeypatch, tmp_path) as one:
        yield one


def typed(capsys, *arguments):
    """What the command answers: its code, output and errors."""
    code = run(arguments)
    captured = capsys.readouterr()
    return code, captured.out, without_waits(captured.err)


def columns(table):
    """Each row below the headers, as its cells."""
    _, *rows = table.splitlines()
    return [re.split(r" {2,}", row) for row in rows]


@pytest.mark.slow
def test_a_parent_that_does_not_answer_is_waited_for_visibly(monkeypatch, tmp_path):
    """One that accepts and says nothing, until it hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        point_at(url, "read-token", monkeypatch, tmp_path)
        command = [sys.executable, "-m", "haptera", "status"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as asking:
            connection, _ = server.accept()
            assert asking.stderr.readline() == f"waiting for {url}, for up to 60 s\n"
            connection.close()
            assert asking.stderr.readline().startswith("error: cannot reach the parent: ")
            assert asking.wait(WITHIN_S) == UNREACHABLE


def test_what_never_means_anything_is_told_with_its_place(cluster, capsys):
    for command in ("status", "why", "retry", "get"):
        assert typed(capsys, command, "node:* and powr=on") == (
            REFUSED,
            "",
            "error: nothing has a 'powr'\n  selector 'node:* and powr=on', character 12\n"
            f"  {POWR}\n",
        )


POWR = nearest("powr", {*(name for kind in KINDS.values() for name in kind.names), "condition"})


def test_a_site_from_standard_input_is_told_by_that_name(cluster, capsys, monkeypatch):
    site = io.TextIOWrapper(io.BytesIO(b"cluster: quick\nfoo: 1\n"))
    monkeypatch.setattr("sys.stdin", site)
    code, _, errors = typed(capsys, "apply", "-")
    assert (code, "\n  standard input:2:1\n" in errors) == (REFUSED, True)


def test_answers_for_programs_are_json_or_yaml(cluster, capsys):
    def read(*words):
        return json.loads(typed(capsys, *words, "-o", "json")[1])

    assert read("get", "node:rack1n1")["kind"] == "node"
    assert "kind: node\n" in typed(capsys, "get", "node:rack1n1", "-o", "yaml")[1]
    assert len(read("status")["entities"]) == 4
    for happens in (stuck, HAPPENS["tried"], HAPPENS["explained"], HAPPENS["agent"]):
        happens(cluster)
    chain = read("chain", "node:rack1n3")
    tried = {"part": "labnode.switch_on", "ago_ms": 95_000, "outcome": "the BMC\x1b[31m refuses"}
    assert (chain["tried"], chain["explained"]["cost"]) == ([tried], 20)
    assert chain["explained"]["runner_up"]["cost"] == 25
    assert read("why", "node:rack1n3")[0]["agent"]["tried"][0]["outcome"] == "refused"
    for node in (N1, N2, N3):
        cluster.do(cluster.backend.say, node, condition=Condition.WAITING, frozen="by user:eve")
    assert [view["frozen"] for view in read("why")] == ["by user:eve"] * 3, "not folded"
    cluster.backend.tree.wrong = ["nothing can be changed"]
    assert (read("status")["faults"], len(read("status")["entities"])) == (
        cluster.backend.tree.wrong,
        4,
    )
    assert typed(capsys, "status", "--check", "-o", "json")[0] == NOT_CONVERGED


def test_a_parent_that_is_not_there_is_told(capsys, monkeypatch, tmp_path):
    with serving() as one:
        url = one.url
    point_at(url, "read-token", monkeypatch, tmp_path)
    assert typed(capsys, "status") == (
        UNREACHABLE,
        "",
        "error: cannot reach the parent: Connection refused\n"
        f"  {url}\n"
        "  check that it runs, and that the client file has its address\n",
    )


def test_the_client_file_is_found_above_and_warned_of_where_others_can_read_it(
    cluster, capsys, monkeypatch, tmp_path
):
    (tmp_path / ".haptera").mkdir()
    path = point_at(cluster.url, "read-token", monkeypatch, tmp_path / ".haptera", mode=0o644)
    monkeypatch.delenv("HAPTERA_CLIENT")
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    code, _, errors = typed(capsys, "status")
    assert (code, errors) == (OK, f"warning: {path} can be read by others; chmod 600 it\n")


def test_no_client_file_is_told(capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("HAPTERA_CLIENT", raising=False)
    monkeypatch.chdir(tmp_path)
    code, _, errors = typed(capsys, "status")
    do = "start a lab with `haptera lab`, or name a file with --client or $HAPTERA_CLIENT"
    what = "no .haptera/client.json here or in a folder above"
    assert (code, errors) == (UNREACHABLE, told(what, tmp_path, do))
    code, _, errors = typed(capsys, "--client", "none.json", "status")
    what = "no client file: No such file or directory"
    assert (code, errors) == (UNREACHABLE, told(what, "none.json", "name one with --client"))


@pytest.mark.slow
def test_watch_says_once_that_nobody_answers_and_waits(monkeypatch, tmp_path):
    point_at("http://127.0.0.1:9", "any", monkeypatch, tmp_path)
    command = [sys.executable, "-m", "haptera", "watch"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        first = process.stderr.readline()
        with suppress(subprocess.TimeoutExpired):
            process.wait(1)  # several tries
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert (process.returncode, (first + rest).count("error:")) == (OK, 1)
    assert first == "error: cannot reach the parent: Connection refused\n"


def test_watch_tells_each_change_until_it_is_interrupted(cluster):
    with watching("watch") as lines:
        first = [next(lines) for _ in range(4)]
        cluster.do(cluster.backend.publish, N1)  # only grown older: no news
        stuck(cluster)
        news = next(lines)
    assert first[0] == "node:rack1n1              converged  power=on\n"
    assert news == (
        "node:rack1n3              stuck      power=on"
        "  labnode.switch_on failed: the BMC refuses [31m\n"
    )


def test_watch_tells_only_what_was_asked_for(cluster):
    with watching("watch", "node:rack1n[2-3]", "--type", "condition") as lines:
        first = [next(lines).split()[0] for _ in range(2)]
        cluster.do(cluster.backend.write, SetDesired(N2, "power", "off", "site"))
        cluster.do(cluster.backend.say, N1, why="not asked for")
        stuck(cluster)
        news = next(lines).split()[:2]
    assert first == ["node:rack1n2", "node:rack1n3"]
    assert news == ["node:rack1n3", "stuck"]


def test_watch_tells_what_has_left(cluster):
    stuck(cluster)
    with watching("watch", "condition=stuck") as lines:
        first = next(lines).split()[:2]
        cluster.do(cluster.backend.say, N3, condition=Condition.CONVERGED)
        news = next(lines).split()
    assert first == ["node:rack1n3", "stuck"]
    assert news == ["node:rack1n3", "left"]


def test_no_token_is_ever_written_out(cluster, capsys):
    for arguments in (["status"], ["why"], ["get", "node:none"], ["apply", "none.yaml"]):
        _, out, errors = typed(capsys, *arguments)
        assert not any(token in out + errors for token in TOKENS)


@pytest.mark.parametrize("command", [["check"], ["module", "lint"]])
def test_examples_in_the_help_stand_on_lines_of_their_own(command, capsys):
    assert run([*command, "--help"]) == OK
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[lines.index("Examples:") + 1].startswith(f"haptera {' '.join(command)} ")


@pytest.mark.parametrize(
    "words",
    [
        ("submit", "a\udcff"),
        ("submit", "--name", "a\udcff", "true"),
        ("exec", "n1", "--", "a\udcff"),
        ("freeze", "n1", "-m", "a\udcff"),
    ],
)
def test_an_argument_that_is_no_text_is_refused_in_words(capsys, tmp_path, words):
    client = tmp_path / "client.json"
    client.write_text('{"url": "http://127.0.0.1:1", "token": "hp1.a.b"}')
    client.chmod(0o600)

    assert run(["--client", str(client), *words]) == REFUSED
    said = capsys.readouterr().err
    assert said == "error: 'a\\udcff' is not text\n  write it in UTF-8\n"


def test_an_hour_is_what_nobody_chose_and_ever_has_no_end(cluster, capsys):
    words, ends = ("freeze", "rack1n1", "-m", "board swap", "-o", "json"), {}
    for arguments in ((), ("--for", "1h"), ("--for", "30s"), ("--for", "2d"), ("--for", "ever")):
        _, out, _ = typed(capsys, *words, *arguments)
        ends[arguments] = json.loads(out)["until_s"]
    hour = ends["--for", "1h"]

    assert ends["--for", "ever"] is None
    assert 0 <= hour - ends[()] <= 30
    assert 3_570 <= hour - ends["--for", "30s"] <= 3_600
    assert 47 * 3_600 <= ends["--for", "2d"] - hour <= 47 * 3_600 + 30


def test_a_client_file_lets_its_holder_in(cluster, capsys, monkeypatch, tmp_path):
    point_at(cluster.url, "admin-token", monkeypatch, tmp_path)
    _, text, _ = typed(capsys, "token", "make", "eve", "--client-file")
    assert json.loads(text)["token"] == "hp1.t1.secret"
    (tmp_path / "eve.json").write_text(text)
    (tmp_path / "eve.json").chmod(0o600)
    monkeypatch.setenv("HAPTERA_CLIENT", str(tmp_path / "eve.json"))
    assert typed(capsys, "status")[0] == OK
    code, _, errors = typed(capsys, "token", "list")
    assert code == REFUSED
    assert errors.startswith("error: this needs a token of scope admin, eve's allows read\n")


def test_nodes_that_a_lab_does_not_run_are_told_by_apply(cluster, capsys, tmp_path):
    path, site = tmp_path / "client.json", tmp_path / "other.yaml"
    site.write_text("cluster: quick\nnodes: {'n[8-9]': {}}\nmodules: []\n")
    assert typed(capsys, "apply", "--dry-run", str(site))[2] == ""
    path.write_text(json.dumps({**json.loads(path.read_text()), "constants": {"x": "1"}}))
    code, _, errors = typed(capsys, "apply", "--dry-run", str(site))
    do = "restart the lab with this site (haptera lab --site FILE)"
    assert (code, errors.splitlines()) == (
        OK,
        [
            f"no machine runs for node:n[8-9]: {do}",
            f"a machine still runs for node:rack1n[1-3]: {do}",
        ],
    )
