"""A token limited to one node does not reach beyond it by what it writes there."""

import json

import pytest

from haptera.kinds import KINDS
from haptera.model.changes import Declare, SetDesired
from haptera.model.declared.schema import Attribute, Extension, extend
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend

N1 = node_id("n1")
MODULE = EntityId("module", "service", "n1")
NAMED = '{"key": {"secret": "mine"}}'
WIDE = tuple(one.name for one in KINDS["node"].attributes if one.wide)


@pytest.fixture(name="cluster")
def _cluster():
    """Node n1 belongs to bob but for its power; with it the text of a token limited to it."""
    backend = FakeBackend()
    backend.write(
        Declare(N1, {"bmc": "10.0.0.1"}, "user:bob"),
        SetDesired(N1, "power", "on", "site"),
        Declare(node_id("n2"), {"bmc": "10.0.0.2"}, "site"),
        Declare(MODULE, {}, "user:bob"),
        SetDesired(MODULE, "settings", NAMED, "user:bob"),
    )
    app = app_of(backend)
    body = {"name": "bob", "scope": "write", "for_s": 60, "within": "n1"}
    return backend, app, ask(app, "POST", "/v1/tokens", token="admin-token", body=body).json["text"]


def told(answer):
    return answer.status, answer.json.get("code")


def wrote(cluster, entity, part, body, query=""):
    """What the limited token is answered, by both ways to write; nothing may have been written."""
    backend, app, token = cluster
    before = backend.revision()
    path = f"/v1/entities/{entity}/{part}{query}"
    answers = [told(ask(app, "PATCH", path, token=token, body=body))]
    many = {"patches": [{"entity": entity, part: body}]}
    (one,) = ask(app, "POST", f"/v1/bulk{query}", token=token, body=many).json["results"]
    answers.append((one["status"], one.get("problem", {}).get("code")))
    assert (backend.revision(), answers[0]) == (before, answers[1])
    return answers[0]


def test_what_is_wrong_with_the_whole_cluster_is_told_to_who_may_see_all_of_it(cluster):
    backend, app, token = cluster
    backend.tree.wrong = ["nothing can be changed: state.db: disk is full"]
    for path in ("/v1/status", "/v1/entities"):
        assert ask(app, "GET", path, token="read-token").json["faults"] == backend.tree.wrong
        assert ask(app, "GET", path, token=token).json["faults"] == []


@pytest.mark.parametrize("name", WIDE)
def test_what_decides_about_more_than_the_node_is_not_written(cluster, name):
    for text in ("10.0.0.2", None) if name == "bmc" else ("10.0.0.2",):
        assert wrote(cluster, "node:n1", "attributes", {name: text}) == (
            403,
            Code.OUTSIDE_LIMIT,
        )


def test_what_stays_as_it_is_reaches_nowhere(cluster):
    _, app, token = cluster
    path = "/v1/entities/node:n1/attributes"
    assert ask(app, "PATCH", path, token=token, body={"bmc": "10.0.0.1"}).status == 200


def test_all_attributes_are_wide_unless_they_say_of_themselves_that_they_are_not():
    assert {"platform", "rack", "address", "bmc", "groups", "if_lost", "jobs"} < set(WIDE)
    outlet, note = Attribute("node", "pdu.outlet"), Attribute("node", "pdu.note", wide=False)
    extended = extend(KINDS["node"], [Extension("pdu", attributes=(outlet, note))])
    assert {one.name for one in extended.attributes if one.wide} == {*WIDE, "pdu.outlet"}


def test_nothing_is_taken_from_the_site(cluster):
    refused = wrote(cluster, "node:n1", "desired", {"power": "off"}, "?take=1")
    assert refused == (403, Code.OUTSIDE_LIMIT)


def test_a_secret_that_is_not_named_there_yet_is_not_named(cluster):
    for settings in (
        '{"key": {"secret": "other"}}',
        '{"key": {"secret": "mine"}, "more": [{"secret": "other"}]}',
        '{"key": {"secret": "file:/etc/shadow"}}',
    ):
        assert wrote(cluster, "module:service@n1", "desired", {"settings": settings}) == (
            403,
            Code.OUTSIDE_LIMIT,
        )
    _, app, token = cluster
    same = {"settings": '{"key": {"secret": "mine"}, "port": 1}'}
    path = "/v1/entities/module:service@n1/desired"
    assert ask(app, "PATCH", path, token=token, body=same).status == 200


@pytest.mark.parametrize("user", ["eve", "root"])
@pytest.mark.parametrize(
    ("token", "status"), [("write-token", 403), ("exec-token", 201), ("admin-token", 201)]
)
def test_only_who_may_run_commands_chooses_the_user_of_a_job(cluster, user, token, status):
    _, app, _ = cluster
    spec = {"command": ["true"], "size": {"cpus": 1, "memory_mb": 1}, "user": user}
    assert ask(app, "POST", "/v1/jobs", token=token, body={"spec": spec}).status == status


@pytest.mark.parametrize(
    ("whose", "token", "status"),
    [
        ("admin-token", "write-token", 403),
        ("write-token", "write-token", 200),
        ("write-token", "admin-token", 200),
    ],
)
def test_a_job_is_changed_by_its_owner_or_by_an_admin(cluster, whose, token, status):
    _, app, _ = cluster
    spec = {"command": ["true"], "size": {"cpus": 1, "memory_mb": 1}}
    assert ask(app, "POST", "/v1/jobs", token=whose, body={"spec": spec}).status == 201
    changed = [
        ask(app, "PATCH", "/v1/jobs/1", token=token, body={"priority": 7}),
        ask(app, "DELETE", "/v1/jobs/1", token=token),
    ]
    assert [one.status for one in changed] == [status] * 2
    job = json.loads(ask(app, "GET", "/v1/jobs/1", token=token).body)
    assert (job["priority"], job["state"]) == ((7, "cancelled") if status == 200 else (0, "queued"))
