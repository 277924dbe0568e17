"""`haptera rehearse` as typed: nothing is changed, and the exit code says how it went."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from haptera.cli.main import NOT_CONVERGED, OK, REFUSED
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
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


def test_a_change_whose_rehearsal_ends_badly_is_not_applied(cluster, capsys):
    # A service on a node that is to stay off never comes to run.
    bad = """\
cluster: quick
modules: [labnode, service]
nodes: {"n[1-20]": {platform: labnode}}
services: {web: {command: serve}}
desired: {"n[1-20]": {power: off}, web@n1: {run: running}}
"""
    Path("bad.yaml").write_text(bad)
    code, _, errors = typed(capsys, "apply", "bad.yaml", "--rehearsed")
    assert (code, cluster.backend.revision()) == (REFUSED, 40)
    assert "its rehearsal was done in 0 of 5 runs; service:web@n1: " in errors
    code, _, errors = typed(capsys, "apply", "-", "--rehearsed")
    assert (code, "leave out --plan and -" in errors) == (2, True)
    # One that ends well is applied: only the token stands in its way here.
    code, _, errors = typed(capsys, "apply", "site.yaml", "--rehearsed")
    assert (code, "rehearsal" in errors, "scope write" in errors) == (REFUSED, False, True)


def test_two_changes_are_compared_and_their_first_different_steps_shown(cluster, capsys):
    fewer = SITE.replace('desired: {"n[1-20]"', 'desired: {"n[1-19]"')
    Path("other.yaml").write_text(fewer)
    words = ("rehearse", "site.yaml", "--runs", "1", "--vs")
    code, out, errors = typed(capsys, *words, "other.yaml", "-o", "json")
    answer = json.loads(out)
    assert (code, errors) == (OK, "")
    assert [answer[one]["steps"]["median"] for one in ("one", "other")] == [20, 19]
    assert all(one["one"] != one["other"] for one in answer["first"])
    assert answer["first"][0]["number"] <= 20
    code, out, _ = typed(capsys, *words, "site.yaml")
    assert (code, out.splitlines()[-1]) == (OK, "the same steps run in the same order")
    code, _, errors = typed(capsys, *words, "gone.yaml")
    assert (code, "gone.yaml" in errors) == (REFUSED, True)
    code, _, errors = typed(capsys, *words, "site.yaml", "--find", "--hold", "always: n1 = 1")
    assert (code, "is of one change" in errors) == (REFUSED, True)


def test_what_breaks_a_condition_is_found_and_how_to_replay_it(cluster, capsys):
    words = ("rehearse", "site.yaml", "--within", "10m", "--find", "--runs", "3")
    hold = ("--hold", "always: count(power=on) < 15")
    code, out, _ = typed(capsys, *words, *hold)
    assert (code, out.splitlines()[0]) == (NOT_CONVERGED, "found in history 1:")
    assert out.splitlines()[-1] == "replay: the same with --runs 1 --seed 1"
    code, out, _ = typed(capsys, *words, *hold, "-o", "json")
    assert json.loads(out)["found"]["breach"]["how"] == "20 where always < 15 was meant"
    code, out, _ = typed(capsys, *words, "--hold", "always: count(power=on) <= 20")
    assert (code, out) == (OK, "no condition was broken in 4 histories\n")
    code, _, errors = typed(capsys, *words)
    assert (code, "there is no condition to break" in errors) == (REFUSED, True)


SYSTEM = "system:compute@n[1-2]"


@pytest.fixture
def systems(monkeypatch, tmp_path):
    """Two nodes that run image a, at a parent with the controller of rolls."""
    modules = [EntityId("module", one, None) for one in ("jobs", "labnode", "roll", "system")]
    changes = [Declare(one, {}, "site") for one in modules]
    for name in ("n1", "n2"):
        compute = EntityId("system", "compute", name)
        changes += [
            Declare(node_id(name), {"platform": "labnode"}, "site"),
            SetDesired(node_id(name), "power", "on", "site"),
            Declare(compute, {}, "site"),
            SetDesired(compute, "run", "running", "site"),
            SetDesired(compute, "image", "a", "site"),
        ]
    with serving(*changes) as one:
        point_at(one.url, "read-token", monkeypatch, tmp_path)
        yield one


def test_a_roll_is_played_and_nothing_of_it_is_written(systems, capsys):
    revision = systems.backend.revision()
    words = (
        "rehearse",
        "roll",
        SYSTEM,
        "--image",
        "b",
        "--take",
        "--runs",
        "1",
        "--within",
        "3h",
        "-o",
        "json",
    )
    code, out, errors = typed(capsys, *words)
    answer = json.loads(out)
    assert (code, errors, systems.backend.revision()) == (OK, "", revision)
    assert answer["disrupted_nodes"]["median"] == 2
    code, out, _ = typed(capsys, *words, "--fault", "n1: image is bad for 3h")
    left = {one["entity"]: one["why"] for one in json.loads(out)["left"]}
    assert (code, left.keys()) == (NOT_CONVERGED, {"roll:b"})
    assert left["roll:b"].startswith("halted: system:compute@n1: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "belongs to site"),
        (("--take", "--deadline", "noon"), "'noon' is not a duration"),
        (("--take", "--name", "a/b"), "a/b"),
        (("--take", "--max-unavailable", "0%"), "'0%' does not say how many"),
    ],
)
def test_a_roll_that_could_not_begin_is_not_rehearsed(systems, capsys, words, said):
    code, _, errors = typed(capsys, "rehearse", "roll", SYSTEM, "--image", "b", *words)
    assert (code, said in errors) == (REFUSED, True), errors


def test_a_roll_whose_rehearsal_ends_badly_is_not_begun(systems, capsys):
    revision = systems.backend.revision()
    words = ("roll", SYSTEM, "--image", "b", "--take", "--no-wait", "--rehearsed")
    code, _, errors = typed(capsys, *words, "--deadline", "1s")
    assert (code, systems.backend.revision()) == (REFUSED, revision)
    assert "its rehearsal was done in 0 of 5 runs; roll:b: halted: " in errors
    assert f"see haptera rehearse roll '{SYSTEM}' --image b" in errors
    # One that ends well begins: only the token stands in its way here.
    code, _, errors = typed(capsys, *words)
    assert (code, "rehearsal" in errors, "scope write" in errors) == (REFUSED, False, True)


def test_a_roll_that_never_was_is_not_compared(systems, capsys):
    for words in (("compare", "b"), ("--compare", "b")):
        code, out, errors = typed(capsys, "rehearse", *words)
        assert (code, out) == (REFUSED, "")
        assert errors.splitlines()[:2] == ["error: no roll is recorded", "  roll:b"]


def test_a_run_is_drawn_with_a_line_for_each_node(cluster, capsys, tmp_path):
    picture = tmp_path / "run.svg"
    words = ("rehearse", "site.yaml", "--runs", "1", "--timeline")
    code, _, errors = typed(capsys, *words, str(picture))
    drawn = ElementTree.parse(picture).getroot()
    names = [one.text for one in drawn if one.text in NODES]
    titles = [one.text for one in drawn.iter() if one.tag.endswith("title")]
    assert (code, errors, sorted(names)) == (OK, "", sorted(NODES))
    assert sorted(one.partition(" for ")[0] for one in titles) == sorted(
        f"labnode.switch_on on node:{name}" for name in NODES
    )
    code, _, errors = typed(capsys, *words, str(tmp_path / "nowhere" / "run.svg"))
    assert (code, "cannot be written: No such file or directory" in errors) == (REFUSED, True)
    find = ("--find", "--hold", "always: count(power=on) < 15")
    code, _, errors = typed(capsys, *words, str(picture), *find)
    assert (code, "leave out --timeline" in errors) == (2, True)
