"""Jobs under the verbs that tell of everything else: `get`, `why`, `watch`."""

import json

import pytest

from haptera.cli.main import OK, REFUSED, run
from haptera.model.changes import Declare
from haptera.model.entity import node_id
from tests.cli.clusters import cluster_of
from tests.cli.rig import until, watching
from tests.cli.test_commands import typed

pytestmark = pytest.mark.net

TOO_LARGE = (
    "no node is large enough for 64 CPUs, 512 MB: 62 CPUs missing; there are 1 x 2 CPUs, 512 MB"
)


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    with cluster_of("jobs", monkeypatch, tmp_path, "admin") as one:
        yield one


@pytest.mark.slow
def test_jobs_are_watched_as_they_change(cluster):
    with watching("watch", "job:* and state in (queued,cancelled) and cpus=64") as lines:
        assert next(lines) == f"{'job:2':24}  queued     giant  {TOO_LARGE}\n"
        assert run(["cancel", "job:1"]) == run(["cancel", "job:2", "-m", "a typo"]) == OK
        assert next(lines) == f"{'job:2':24}  cancelled  giant  by user:ada: a typo\n"


@pytest.mark.slow
def test_a_job_that_is_meant_no_more_has_left(cluster):
    with watching("watch", "job:* and state=queued") as lines:
        assert next(lines).startswith("job:2 ")
        assert run(["cancel", "job:2"]) == OK
        assert next(lines) == f"{'job:2':24}  left\n"


@pytest.mark.slow
def test_get_and_why_are_written_again_when_a_job_changes(cluster):
    with watching("get", "job:*", "--watch") as got, watching("why", "job:2", "--watch") as why:
        until(got, "job:2  queued ")
        until(why, f"job:2 giant is queued: {TOO_LARGE}")
        assert run(["cancel", "job:2", "-m", "a typo"]) == OK
        until(got, "job:2  cancelled ")
        until(why, "job:2 giant is cancelled: by user:ada: a typo")


def test_many_nodes_are_drained_and_resumed_by_one_command(cluster, capsys):
    nodes = [node_id(f"n{number}") for number in (3, 4, *range(10, 35))]
    cluster.do(cluster.backend.write, *(Declare(one, {}, "site") for one in nodes))
    told = "n3 is draining: job:1 is there still: heat\nn4 is drained: heat\n"
    assert typed(capsys, "drain", "n3", "node:n4", "-m", "heat") == (OK, told, "")
    assert typed(capsys, "undrain", "*", "--state", "drained", "--who", "ada") == (
        OK,
        "n4 may take jobs again, but it takes no jobs: no cpus and memory_mb are declared for it\n",
        "",
    )
    code, out, err = typed(capsys, "hold", "n[10-34]", "-m", "heat")
    assert (code, err) == (OK, "")
    assert out.splitlines()[19:] == ["n29 is hold: heat", "and 5 more: 25 nodes in all"]
    assert typed(capsys, "undrain", "n[30-36]") == (
        REFUSED,
        "",
        "error: there is no node:n35\n"
        "  see which there are: haptera get node, or GET /v1/entities?kind=node\n",
    )
    nothing = "error: no node of service:web is there\n"
    assert typed(capsys, "undrain", "service:web")[2].startswith(nothing)
    both = json.loads(typed(capsys, "undrain", "n[3-4]", "-o", "json")[1])
    assert [one["name"] for one in both] == ["n3", "n4"]
    assert json.loads(typed(capsys, "resume", "n3", "-o", "json")[1])["name"] == "n3"
