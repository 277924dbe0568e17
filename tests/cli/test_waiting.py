"""`haptera wait` and `apply --wait`: until things are as desired, or the time is over."""

import subprocess

import pytest

from haptera.cli.main import NOT_CONVERGED, OK, REFUSED, USAGE
from haptera.model.answers.views import Condition
from haptera.model.changes import Declare, SetDesired, Undeclare
from haptera.model.entity import EntityId, node_id
from tests.api.serving import WITHIN_S, serving
from tests.cli.rig import command
from tests.cli.test_commands import columns, point_at, typed

pytestmark = pytest.mark.net
N1, N2 = node_id("n1"), node_id("n2")
WEB = EntityId("service", "web", "n1")
SITE = 'cluster: quick\nnodes: {"n[1-2]": {}}\ndesired: {"n[1-2]": {power: on}}\n'


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    changes = [Declare(N1, {}, "site"), Declare(N2, {}, "site"), Declare(WEB, {}, "user:eve")]
    powers = [SetDesired(node, "power", "on", "site") for node in (N1, N2)]
    with serving(*changes, *powers) as one:
        point_at(one.url, "write-token", monkeypatch, tmp_path)
        yield one


def say(cluster, entity, condition, why=None):
    cluster.do(cluster.backend.say, entity, condition=condition, why=why)


def test_what_is_so_already_is_not_waited_for(cluster, capsys):
    for words in (["n1"], ["n[1-2]"], ["node:n1", "--for", "power=on"], ["n9*", "--for", "gone"]):
        assert typed(capsys, "wait", *words) == (OK, "", "")


def test_who_waits_for_power_does_not_wait_for_what_has_none(cluster, capsys):
    # A service is on n1: the node alone can be on or off.
    assert typed(capsys, "wait", "n1", "--for", "power=on") == (OK, "", "")
    code, out, errors = typed(capsys, "wait", "n1", "--timeout", "300ms", "--for", "power=off")
    assert (code, columns(out)) == (NOT_CONVERGED, [["node", "converged", "1", "n1"]])
    assert errors.startswith("error: 1 of n1 is not power=off within 300ms\n")
    assert typed(capsys, "wait", "service:web", "--for", "power=off")[0] == REFUSED


def test_what_is_left_when_the_time_is_over_is_told(cluster, capsys):
    say(cluster, N1, Condition.STUCK, "jammed")
    code, out, errors = typed(capsys, "wait", "n[1-2]", "--timeout", "300ms")
    assert code == NOT_CONVERGED
    assert columns(out) == [["node", "stuck", "1", "n1", "jammed"]]
    assert errors == (
        "error: 1 of n[1-2] is not converged within 300ms\n  ask why: haptera why 'n[1-2]'\n"
    )


def test_what_is_as_desired_is_not_proposed_to_be_asked_why_of(cluster, capsys):
    errors = typed(capsys, "wait", "node:n1", "--for", "stuck", "--timeout", "300ms")[2]
    assert errors == (
        "error: 1 of node:n1 is not stuck within 300ms\n  see how it is: haptera get node:n1\n"
    )


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["rack9"], "error: no such node: rack9\n"),
        (["service:db"], "error: there is no service:db\n"),
        (["n1", "--for", "well"], "error: 'well' is not a condition to wait for\n"),
        (["n1", "--timeout", "soon"], "error: 'soon' is not a duration"),
    ],
)
def test_what_can_never_be_is_not_waited_for(cluster, capsys, words, what):
    code, out, errors = typed(capsys, "wait", *words)
    assert (code, out) == (REFUSED, "")
    assert errors.startswith(what)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "before", "then"),
    [
        ([], Condition.ACTING, Condition.CONVERGED),
        (["--for", "stuck"], Condition.ACTING, Condition.STUCK),
        (["--for", "gone"], Condition.CONVERGED, None),
    ],
)
def test_it_ends_as_soon_as_it_is_so(cluster, words, before, then):
    say(cluster, N2, before)
    with subprocess.Popen(
        command("wait", "node:n2", *words), stdout=subprocess.PIPE, text=True
    ) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(1.0)  # it cannot be seen to wait but by waiting
        if then is None:
            cluster.do(cluster.backend.write, Undeclare(N2))
        else:
            say(cluster, N2, then)
        assert waiting.wait(WITHIN_S) == OK


def test_apply_waits_for_what_it_changed_alone(cluster, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "site.yaml").write_text(SITE.replace("on}", "off}"))
    say(cluster, WEB, Condition.STUCK, "jammed")
    words = ("apply", "site.yaml", "--wait")
    assert typed(capsys, *words)[0] == OK
    say(cluster, N1, Condition.STUCK, "jammed")
    (tmp_path / "site.yaml").write_text(SITE)
    assert typed(capsys, *words, "--timeout", "300ms")[0] == NOT_CONVERGED


def test_a_kind_and_names_are_what_other_tools_take(cluster, capsys):
    table = typed(capsys, "get", "node:n1")
    assert table[0] == OK
    assert typed(capsys, "get", "node", "n1") == table
    assert typed(capsys, "get", "node", "n1", "n2") == typed(capsys, "get", "node:n1 or node:n2")
    assert typed(capsys, "get", "service", "web") == typed(capsys, "get", "service:web")
    assert typed(capsys, "get", "n1", "n2")[0] == USAGE


def test_a_node_is_named_without_its_kind(cluster, capsys):
    assert typed(capsys, "chain", "n1") == typed(capsys, "chain", "node:n1")
    assert typed(capsys, "set", "n1", "power=off", "--take")[0] == OK
    assert cluster.backend.store[N1].desired["power"].value == "off"
    assert typed(capsys, "unset", "n1", "power")[0] == OK
    assert "power" not in cluster.backend.store[N1].desired


def test_the_logs_of_a_node_are_of_all_on_it(cluster, capsys):
    cluster.backend.logs[WEB] = b"one\ntwo\n"
    assert typed(capsys, "logs", "n1", "-n", "1") == (OK, "==> service:web@n1 <==\ntwo\n", "")
    assert typed(capsys, "logs", "node:n2") == (OK, "", "nothing on node:n2 has a log\n")
    assert typed(capsys, "logs", "n1", "--follow")[0] == USAGE
