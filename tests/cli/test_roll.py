"""`haptera roll`: what it writes, in one piece, and what it says of how far a roll has come."""

import json
from threading import Timer
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import pytest

from haptera.cli.main import NOT_CONVERGED, OK, REFUSED
from haptera.model.answers.past import Happened, PastView, Sort
from haptera.model.changes import SetDesired
from haptera.model.entity import EntityId
from haptera.runtime.clock import wall_s
from tests.cli.clusters import cluster_of
from tests.cli.test_commands import typed
from tests.docs.answer_schemas import FOLDER, VERBS
from tests.docs.problem_schema import valid_by

pytestmark = pytest.mark.net
NODES = ("n1", "n2")
CONTROLLER = EntityId("module", "roll", None)
ROLL = EntityId("roll", "b", None)
SYSTEMS = [EntityId("system", "compute", node) for node in NODES]


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    with cluster_of("systems", monkeypatch, tmp_path) as one:
        yield one


def wanted(cluster, entity):
    stored = cluster.backend.store.get(entity)
    return {} if stored is None else {name: one.value for name, one in stored.desired.items()}


def begin(capsys, *more):
    return typed(capsys, "roll", "system:compute@n[1-2]", "--image", "b", "--no-wait", *more)


def test_a_roll_is_written_with_all_of_its_systems_or_not_at_all(cluster, capsys):
    code, _, errors = begin(capsys)
    assert (code, "belongs to site" in errors) == (REFUSED, True)
    assert wanted(cluster, ROLL) == {}

    more = ("--take", "--canary", "2", "--max-unavailable", "50%", "--health", "true")
    assert begin(capsys, *more) == (OK, "roll b: 2 systems to b\n", "")
    order = wanted(cluster, ROLL)
    assert order.pop("deadline") > 0
    assert order == {
        "image": "b",
        "select": "system:compute@n[1-2]",
        "canary": 2,
        "unavailable": "50%",
        "on_failure": "give-back",
        "wish": "run",
    }
    system = {"image": "a", "spare": "b", "roll": "b", "attempt": 1, "health": "true"}
    assert [wanted(cluster, one) for one in SYSTEMS] == [system, system]


def test_what_is_wished_of_a_roll_is_written_and_a_resumed_one_tries_anew(cluster, capsys):
    begin(capsys, "--take")
    for wish in ("pause", "abort", "undo"):
        assert typed(capsys, "roll", wish, "b") == (OK, "", "")
        assert wanted(cluster, ROLL)["wish"] == wish
    typed(capsys, "set", "roll:b", "halted=its deadline has passed", "deadline=1")
    code, _, errors = typed(capsys, "roll", "resume", "b", "--deadline", "1h", "--within", "1s")
    assert (code, "it is running" in errors) == (4, True)
    assert wanted(cluster, ROLL)["deadline"] > wall_s()
    assert (wanted(cluster, ROLL)["wish"], "halted" in wanted(cluster, ROLL)) == ("run", False)
    assert [wanted(cluster, one)["attempt"] for one in SYSTEMS] == [2, 2]


def test_what_a_roll_wrote_is_taken_back_with_it_but_where_its_image_runs(cluster, capsys):
    begin(capsys, "--take")
    taken, _ = SYSTEMS
    owner = cluster.backend.store.get(taken).desired["image"].owner
    # As the controller takes a system: it exchanges the two.
    swapped = [SetDesired(taken, *one, owner) for one in (("image", "b"), ("spare", "a"))]
    cluster.do(cluster.backend.write, *swapped)
    assert wanted(cluster, taken)["image"] == "b"
    assert typed(capsys, "roll", "rm", "b") == (OK, "", "")
    assert [wanted(cluster, one)["image"] for one in SYSTEMS] == ["a", "a"]
    assert [wanted(cluster, one).get("spare") for one in SYSTEMS] == [None, None]


def test_the_course_of_a_roll_is_told_from_the_record(cluster, capsys):
    begin(capsys, "--take")
    known = {"run": "running", "applied": "current", "staged": "stale"}
    views = [PastView(str(one), {}, {"image": "a"}, known) for one in SYSTEMS]
    cluster.backend.pasts = {1000: views}
    staged = Happened(1003.0, str(SYSTEMS[1]), Sort.SEEN, "staged", "current")
    cluster.backend.happenings = [staged]
    code, out, errors = typed(capsys, "roll", "timeline", "b", "-o", "json")
    told = json.loads(out)
    assert valid_by(told, FOLDER / VERBS, "roll-timeline")
    assert (code, errors, told["name"], told["marks"]) == (OK, "", "b", [])
    lanes = {
        one["entity"]: [(span["phase"], span["from_s"]) for span in one["spans"]]
        for one in told["lanes"]
    }
    assert lanes == {
        str(SYSTEMS[0]): [("staging", 1000.0)],
        str(SYSTEMS[1]): [("staging", 1000.0), ("ready", 1003.0)],
    }
    _, out, _ = typed(capsys, "roll", "timeline", "b")
    assert out.splitlines()[2].split() == [
        *(str(SYSTEMS[1]), "1970-01-01", "00:16:40", "UTC", "3.0", "s", "staging"),
    ]
    _, out, _ = typed(capsys, "roll", "timeline", "b", "-o", "svg")
    assert ElementTree.fromstring(out).tag == "{http://www.w3.org/2000/svg}svg"
    code, out, errors = typed(capsys, "roll", "timeline", "c")
    assert (code, out, "no roll is recorded" in errors) == (REFUSED, "", True)


def lists_told(cluster):
    """How often entities were listed, as the server counts it."""
    headers = {"Authorization": "Bearer read-token"}
    with urlopen(Request(f"{cluster.url}/metrics", headers=headers)) as answer:
        lines = answer.read().decode().splitlines()
    counted = [one for one in lines if "_count{" in one and 'route="/v1/entities"' in one]
    return sum(float(one.split()[-1]) for one in counted if 'method="GET"' in one)


def test_a_roll_that_is_waited_for_is_followed_and_nothing_is_listed_meanwhile(cluster, capsys):
    begin(capsys, "--take")
    told = []
    for within in ("0s", "4s"):
        before = lists_told(cluster)
        assert typed(capsys, "roll", "resume", "b", "--within", within)[0] == NOT_CONVERGED
        told.append(lists_told(cluster) - before)
    assert told[0] == told[1] > 0


def test_a_roll_is_waited_for_until_it_is_over(cluster, capsys):
    begin(capsys, "--take")
    halted = SetDesired(ROLL, "halted", "two systems failed", "user:ada")
    later = Timer(1.0, cluster.do, (cluster.backend.write, halted))
    later.start()
    code, out, errors = typed(capsys, "roll", "resume", "b", "--within", "50s")
    later.join()
    assert (code, out.splitlines()[0][:8]) == (REFUSED, "running:")
    assert "it is halted: two systems failed" in errors
