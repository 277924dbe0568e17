"""`haptera wait` and `apply --wait`: until things are as desired, or the time is over."""

import subprocess

import pytest

from haptera.cli.main import NOT_CONVERGED, OK
from haptera.model.answers.views import Condition
from haptera.model.changes import Declare, SetDesired, Undeclare
from haptera.model.entity import EntityId, node_id
from tests.api.serving import WITHIN_S, serving
from tests.cli.rig import command
from tests.cli.test_commands import point_at, typed

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
    assert typed(capsys, *words, "--within", "300ms")[0] == NOT_CONVERGED
