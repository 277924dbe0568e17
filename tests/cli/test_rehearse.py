"""`haptera rehearse` as typed: nothing is changed, and the exit code says how it went."""

import json

import pytest

from haptera.cli.main import NOT_CONVERGED, OK, REFUSED
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from tests.api.serving import serving
from tests.cli.test_commands import point_at, typed

NODES = [f"n{number}" for number in range(1, 21)]
SITE = """\
cluster: quick
nodes: {"n[1-20]": {platform: labnode}}
desired: {"n[1-20]": {power: on}}
"""

pytestmark = pytest.mark.net


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    """Twenty nodes that are to be off."""
    nodes = [Declare(node_id(one), {"platform": "labnode"}, "site") for one in NODES]
    with serving(*nodes, *(SetDesired(one.entity, "power", "off", "site") for one in nodes)) as one:
        point_at(one.url, "read-token", monkeypatch, tmp_path)
        (tmp_path / "site.yaml").write_text(SITE)
        monkeypatch.chdir(tmp_path)
        yield one


def test_a_change_is_played_and_nothing_of_it_is_done(cluster, capsys):
    code, out, errors = typed(capsys, "rehearse", "site.yaml", "--runs", "2")
    assert (code, errors, cluster.backend.revision()) == (OK, "", 40)
    lines = out.splitlines()
    assert lines[0] == "rehearsed 2 times from revision 40, seeds from 1"
    assert [" ".join(line.split()) for line in lines[3:7]] == [
        "steps 20 20 20",
        "steps that failed 0 0 0",
        "nodes disrupted 0 0 0",
        "disrupted at once 0 0 0",
    ]
    assert lines[-1] == "never measured there, so assumed: labnode.switch_on"


def test_what_is_not_done_in_time_and_what_breaks_is_said(cluster, capsys):
    words = (
        *("rehearse", "site.yaml", "--runs", "1", "--within", "10m"),
        *("--fault", "n7: bmc hangs for 1h", "--hold", "always: count(power=on) < 15"),
    )
    code, out, _ = typed(capsys, *words, "-o", "json")
    answer = json.loads(out)
    assert (code, answer["settled"], answer["settled_s"]) == (NOT_CONVERGED, 0, None)
    assert [one["entity"] for one in answer["left"]] == ["node:n7"]
    assert [one["invariant"] for one in answer["breaches"]] == ["always: count(power=on) < 15"]
    code, out, _ = typed(capsys, *words)
    assert code == NOT_CONVERGED
    assert "done within 10 min in 0 of 1 runs" in out.splitlines()[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--within", "90d"), "90d is no horizon"),
        (("--fault", "n1: meteor"), "'n1: meteor' is no fault"),
        (("--fault", "n99: power cut"), "there is no node n99"),
        (("--hold", "power=on"), "'power=on' is no invariant"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused(cluster, capsys, words, said):
    code, _, errors = typed(capsys, "rehearse", "site.yaml", *words)
    assert (code, errors.splitlines()[0].startswith(f"error: {said}")) == (REFUSED, True)
