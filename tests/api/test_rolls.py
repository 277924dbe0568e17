"""The beginning of a roll over REST: what is written, what it would disrupt, what is refused."""

import pytest

from haptera.model.answers.views import ObservedView
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend

CONTROLLER = EntityId("module", "roll", None)
IMAGE, ROLL = EntityId("image", "b", None), EntityId("roll", "b", None)
NODES = [node_id("n1"), node_id("n2")]
SYSTEMS = [EntityId("system", "compute", one.name) for one in NODES]
BODY = {"image": "b", "select": "system:*"}


@pytest.fixture
def cluster():
    backend = FakeBackend()
    backend.write(*(Declare(one, {}, "site") for one in (CONTROLLER, IMAGE, *NODES, *SYSTEMS)))
    backend.write(*(SetDesired(one, "image", "a", "user:eve") for one in SYSTEMS))
    built = ObservedView("built", known=True, method="read", by="image", age_ms=1)
    backend.say(IMAGE, observed={"state": built})
    return backend, app_of(backend, wall_s=lambda: 1_000.0)


def begin(app, query="", *, token="write-token", **more):
    return ask(app, "POST", f"/v1/rolls{query}", token=token, body=BODY | more)


def wanted(backend, entity):
    stored = backend.store.get(entity)
    return {} if stored is None else {name: one.value for name, one in stored.desired.items()}


def told(answer):
    return answer.status, answer.json["what"]


def test_a_roll_is_written_with_all_of_its_systems(cluster):
    backend, app = cluster
    answer = begin(app, "?take=1&why=kernel", canary=2, deadline_s=60)
    begun = {"name": "b", "systems": 2, "owners": ["user:eve"], "rolls": [], "plans": []}
    assert (answer.status, answer.json) == (200, begun)
    assert wanted(backend, ROLL) == {
        "image": "b",
        "select": "system:*",
        "canary": 2,
        "unavailable": "10%",
        "on_failure": "give-back",
        "deadline": 1_060,
        "wish": "run",
    }
    beside = {"image": "a", "spare": "b", "roll": "b", "attempt": 1}
    assert [wanted(backend, one) for one in SYSTEMS] == [beside] * 2
    assert backend.store[SYSTEMS[0]].desired["image"].owner == "user:bob"


def test_a_dry_run_tells_what_the_roll_disrupts_until_its_end_and_writes_nothing(cluster):
    backend, app = cluster
    before = backend.revision()
    answer = begin(app, "?dry_run=1&take=1", token="read-token")
    assert (answer.status, len(answer.json["plans"]), backend.revision()) == (200, 1, before)


@pytest.mark.parametrize(
    ("body", "status", "what"),
    [
        ({"image": "c"}, 404, "there is no image:c"),
        ({"image": "a"}, 409, "it is not built"),
        ({"select": "system:login"}, 400, "there is no system"),
        ({"canary": 0}, 400, "roll.canary: 0 is out of range"),
        ({"unavailable": "0"}, 400, "roll.unavailable: '0' does not say how many"),
        ({"health": "'"}, 400, "system.health"),
        ({"on_failure": "shrug"}, 400, "Invalid enum value 'shrug'"),
    ],
)
def test_what_cannot_be_rolled_is_refused_and_nothing_is_written(cluster, body, status, what):
    backend, app = cluster
    backend.write(Declare(EntityId("image", "a", None), {}, "site"))
    answer = begin(app, "?take=1", token="admin-token", **body)
    assert (answer.status, what in answer.json["what"]) == (status, True), answer.json
    assert wanted(backend, ROLL) == {}


def test_a_system_of_a_roll_that_is_not_over_is_taken_only_if_that_is_asked_for(cluster):
    backend, app = cluster
    other = EntityId("roll", "c", None)
    backend.write(Declare(other, {}, "user:eve"), SetDesired(other, "image", "c", "user:eve"))
    for name, value in (("roll", "c"), ("spare", "c")):
        backend.write(SetDesired(SYSTEMS[1], name, value, "user:eve"))
    answer = begin(app)
    assert told(answer) == (409, "it is in roll c")
    assert begin(app, "?dry_run=1&take=1").json["rolls"] == ["c"]
    backend.write(SetDesired(other, "finished", 7, "user:eve"))
    assert begin(app, "?take=1").json["rolls"] == []


def test_a_limited_token_rolls_what_it_may_change_and_no_more(cluster):
    backend, app = cluster
    body = {"name": "zoe", "scope": "write", "for_s": 60, "within": "n1 or roll:*"}
    text = ask(app, "POST", "/v1/tokens", token="admin-token", body=body).json["text"]
    backend.write(*(SetDesired(one, "image", "a", "user:zoe") for one in SYSTEMS))
    answer = begin(app, token=text)
    assert (answer.status, answer.json["systems"]) == (200, 1)
    assert [wanted(backend, one).get("roll") for one in SYSTEMS] == ["b", None]
    assert begin(app, token=text, select="image=a").json["code"] == Code.OUTSIDE_LIMIT
