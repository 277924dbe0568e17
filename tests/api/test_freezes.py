"""Freezes over REST: what is frozen and thawed, whose it is, and what is refused."""

from haptera.model.changes import Declare, Desired, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend

WALL_S = 1_795_280_400
N1, N2, N3 = (node_id(f"n{number}") for number in (1, 2, 3))
WEB1 = EntityId("service", "web", "n1")
RACK = EntityId("freeze", "rack", None)


def cluster(*freezes):
    """Three nodes, a service, and what eve has frozen: entity, selector and end."""
    backend = FakeBackend()
    backend.write(*(Declare(entity, {}, "site") for entity in (N1, N2, N3, WEB1)))
    for entity, of, until_s in freezes:
        values = {"of": of, "reason": "board swap"} | ({"until_s": until_s} if until_s else {})
        backend.write(
            Declare(entity, {}, "user:eve"),
            *(SetDesired(entity, name, value, "user:eve") for name, value in values.items()),
        )
    return backend, app_of(backend, wall_s=lambda: WALL_S + 0.9)


def post(app, **body):
    return ask(app, "POST", "/v1/freezes", token="write-token", body=body)


def thaw(app, selector):
    return ask(app, "DELETE", f"/v1/freezes?selector={selector}", token="write-token")


def frozen(app):
    return ask(app, "GET", "/v1/freezes", token="read-token").json["freezes"]


def wanted(backend, entity):
    return {name: one.value for name, one in backend.store[entity].desired.items()}


def test_a_freeze_is_an_entity_of_who_asked_with_its_end_in_wall_time():
    backend, app = cluster()
    answer = post(app, selector="n[1-2]", reason="board swap", for_s=3600)

    assert answer.status == 200
    view = answer.json
    (entity,) = [one for one in backend.store if one.kind == "freeze"]
    assert view == {
        "entity": str(entity),
        "selector": "n[1-2]",
        "reason": "board swap",
        "owner": "user:bob",
        "until_s": WALL_S + 3600,
        "entities": 3,
    }
    assert wanted(backend, entity) == {
        "of": "n[1-2]", "reason": "board swap", "until_s": WALL_S + 3600,
    }  # fmt: skip
    assert frozen(app) == [view]


def test_the_same_freeze_of_the_same_person_is_renewed_and_anothers_stands_beside_it():
    _, app = cluster((RACK, "n1", 0))
    first = post(app, selector="n1", reason="one", for_s=60).json
    second = post(app, selector="n1", reason="two").json

    assert second == {**first, "reason": "two", "until_s": None}
    assert {(one["owner"], one["reason"]) for one in frozen(app)} == {
        ("user:bob", "two"),
        ("user:eve", "board swap"),
    }


def test_a_freeze_that_cannot_be_is_refused_and_nothing_is_written():
    backend, app = cluster()
    before = backend.revision()
    wrong = [
        ({"selector": "n[1", "reason": "x"}, Code.SYNTAX),
        ({"selector": "n1", "reason": ""}, Code.MISSING),
        ({"selector": "n1", "reason": "x", "for_s": 0}, Code.INVALID),
        ({"selector": "n9", "reason": "x"}, Code.SELECTS_NOTHING),
        ({"selector": "n1", "reason": "x", "for_s": 10**13}, None),
        ({"selector": "n1"}, Code.SYNTAX),
    ]
    for body, code in wrong:
        answer = post(app, **body)
        assert answer.status == 400, body
        assert code in (None, answer.json["code"])
    assert backend.revision() == before


def test_what_is_thawed_whole_is_no_longer_declared():
    backend, app = cluster((RACK, "n[1-2]", WALL_S + 60))

    assert thaw(app, "n*").json == {
        "revision": backend.revision(),
        "thawed": [{"selector": "n[1-2]", "owner": "user:eve", "thawed": "n[1-2]", "rest": None}],
        "free": ["node:n1", "node:n2", "service:web@n1"],
        "freezes": [],
    }
    assert RACK not in backend.store


def test_of_what_is_thawed_in_part_the_rest_stays_frozen_for_the_same_reason_and_time():
    backend, app = cluster((RACK, "n[1-3]", WALL_S + 60))
    answer = thaw(app, "n1").json

    assert answer["thawed"] == [
        {"selector": "n[1-3]", "owner": "user:eve", "thawed": "n1", "rest": "n[2-3]"}
    ]
    assert answer["free"] == ["node:n1", "service:web@n1"]
    assert [(one["selector"], one["entities"]) for one in answer["freezes"]] == [("n[2-3]", 2)]
    assert backend.store[RACK].owner == "user:eve"
    assert backend.store[RACK].desired == {
        "of": Desired("n[2-3]", "user:bob"),
        "reason": Desired("board swap", "user:eve"),
        "until_s": Desired(WALL_S + 60, "user:eve"),
    }


def test_what_another_freeze_holds_too_is_not_free_again():
    _, app = cluster((RACK, "n1", 0), (EntityId("freeze", "web", None), "service:web@n1", 0))
    answer = thaw(app, "service:web@n2")
    assert answer.status == 404
    post(app, selector="node:n1", reason="mine", for_s=60)

    # Both of node:n1's freezes end; only what is on the node was held by one alone.
    assert thaw(app, "n1").json["free"] == ["node:n1", "service:web@n1"]
    assert frozen(app) == []


def test_what_a_wider_freeze_still_holds_is_not_said_to_be_free():
    other = EntityId("freeze", "web", None)
    _, app = cluster((RACK, "service:web", 0), (other, "service:w*@n1", 0))
    answer = thaw(app, "service:web@n2")
    assert answer.status == 404
    answer = thaw(app, "service:web")

    assert answer.json["free"] == ["service:web@n1"]


def test_thawing_what_is_not_frozen_says_what_is():
    _, app = cluster((RACK, "n1", 0))
    answer = thaw(app, "n2")

    assert answer.status == 404
    assert (answer.json["what"], answer.json["do"]) == (
        "nothing of n2 is frozen",
        "frozen is n1 by user:eve",
    )
    _, app = cluster()
    assert thaw(app, "n2").json["do"] == "nothing is frozen"


def test_a_service_can_be_thawed_alone():
    backend, app = cluster((RACK, "n1", 0))
    answer = thaw(app, "service:web@n1")

    assert answer.status == 200
    assert wanted(backend, RACK)["of"] == "n1 and not service:web@n1"
    assert answer.json["free"] == ["service:web@n1"]


def test_what_goes_by_state_is_not_frozen():
    _, app = cluster()
    answer = post(app, selector="n1 and power=off", reason="board swap")

    assert answer.status == 400
    assert answer.json == {
        **answer.json,
        "what": "a rule cannot select by power: it must hold in every state",
        "where": "selector 'n1 and power=off', character 8",
    }
    assert "haptera get -o name" in answer.json["do"]


def test_a_site_file_prunes_no_freeze():
    backend, app = cluster((RACK, "n1", 0))
    body = {"files": [{"text": "cluster: quick\nnodes: {n1: {}}\n", "name": "site.yaml"}]}
    answer = ask(app, "POST", "/v1/apply", token="write-token", body=body)

    assert [one["entity"] for one in answer.json["changes"]] == [
        "service:web@n1", "node:n3", "node:n2",
    ]  # fmt: skip
    assert RACK in backend.store


def test_what_a_freeze_could_never_hold_is_refused():
    _, app = cluster()
    unknown = post(app, selector="rack:*", reason="board swap")
    module = post(app, selector="module:service@n1", reason="board swap")

    assert (unknown.status, unknown.json["what"]) == (400, "there is no kind 'rack'")
    assert (module.status, module.json["detail"]) == (
        400,
        "selector 'module:service@n1', character 1: a module cannot be frozen"
        " (freeze what it acts on: image or instance or lease or node or replica or service"
        " or system)",
    )
    assert frozen(app) == []
