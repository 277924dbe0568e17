"""Freezes and the brake for a token that is limited to some entities: its own, and no other's."""

import pytest

from haptera.model.answers.views import BrakeView
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code
from haptera.runtime.identity.tokens import Bearer, Scope
from tests.api.asking import app_of, ask, asked
from tests.api.fake_backend import FakeBackend
from tests.api.real_backend import real_backend

WALL_S = 1_795_280_400
N1, N2, OTHER = node_id("rack1n1"), node_id("rack1n2"), node_id("rack2n1")
WEB = EntityId("service", "web", "rack1n1")
LIMIT = "rack1n*"
HERE = {"host": "127.0.0.1:4270"}


def cluster(*freezes, scope="write"):
    """Three nodes and a service, what eve has frozen, and bob, who is limited to rack 1."""
    backend = FakeBackend()
    backend.write(*(Declare(entity, {}, "site") for entity in (N1, N2, OTHER, WEB)))
    for number, of in enumerate(freezes):
        entity = EntityId("freeze", f"f{number}", None)
        backend.write(
            Declare(entity, {}, "user:eve"),
            SetDesired(entity, "of", of, "user:eve"),
            SetDesired(entity, "reason", "heat", "user:eve"),
        )
    app = app_of(backend, wall_s=lambda: WALL_S)
    body = {"name": "bob", "scope": scope, "for_s": 3600, "within": LIMIT}
    text = ask(app, "POST", "/v1/tokens", token="admin-token", body=body).json["text"]
    return backend, lambda method, path, body=b"": ask(app, method, path, token=text, body=body)


def frozen(answer):
    assert answer.status == 200, answer.json
    return [(one["selector"], one["owner"], one["entities"]) for one in answer.json["freezes"]]


def freeze(ask_limited, selector, **more):
    return ask_limited("POST", "/v1/freezes", {"selector": selector, "reason": "swap", **more})


def freezes_in(backend):
    stored = (one for one in backend.store.values() if one.entity.kind == "freeze")
    return sorted((one.desired["of"].value, one.owner) for one in stored)


def test_the_freezes_of_its_entities_are_seen_without_the_names_of_others():
    _, ask_limited = cluster(
        "rack[1-2]n1", "rack2n1", "*", "service:web", "rack1n[1-2]", "node:rack1n9", "rack9*"
    )

    assert frozen(ask_limited("GET", "/v1/freezes")) == [
        ("node:rack1n1 or service:web@rack1n1", "user:eve", 2),
        ("node:rack1n[1-2] or service:web@rack1n1", "user:eve", 3),
        ("service:web@rack1n1", "user:eve", 1),
        ("rack1n[1-2]", "user:eve", 3),
        ("node:rack1n9", "user:eve", 0),
    ]


def test_it_freezes_and_thaws_what_lies_wholly_within_its_limit():
    backend, ask_limited = cluster("rack1n1", "rack2n1")
    made = freeze(ask_limited, "service:web@rack1n1", for_s=60)
    assert (made.status, made.json["entities"], made.json["owner"]) == (200, 1, "user:bob")
    assert freeze(ask_limited, f"*n2 and {LIMIT}").json["entities"] == 1

    thawed = ask_limited("DELETE", "/v1/freezes?selector=rack1n1")
    assert thawed.json["free"] == ["node:rack1n1", "service:web@rack1n1"]
    assert frozen(thawed) == [(f"*n2 and {LIMIT}", "user:bob", 1)]
    assert freezes_in(backend) == [(f"*n2 and {LIMIT}", "user:bob"), ("rack2n1", "user:eve")]


@pytest.mark.parametrize("selector", ["rack2n1", "rack9n1", "rack*", "*", "node:*", "rack1n1,db1"])
def test_what_may_be_of_others_is_refused_whether_there_are_any_or_not(selector):
    backend, ask_limited = cluster("*")
    for answer in (
        freeze(ask_limited, selector),
        ask_limited("DELETE", f"/v1/freezes?selector={selector}"),
    ):
        assert (answer.status, answer.json["code"]) == (403, Code.OUTSIDE_LIMIT)
        assert answer.json["what"] == (
            f"the token is limited to {LIMIT}, and {selector} may select more"
        )
    assert freezes_in(backend) == [("*", "user:eve")]


def test_a_freeze_that_reaches_further_is_not_thawed_and_others_are_not_named():
    backend, ask_limited = cluster("rack[1-2]n1", "rack2n1")
    answer = ask_limited("DELETE", "/v1/freezes?selector=rack1n1")

    assert (answer.status, answer.json["what"]) == (404, "nothing of rack1n1 is frozen")
    assert answer.json["do"] == "frozen is node:rack1n1 or service:web@rack1n1 by user:eve"
    assert freezes_in(backend) == [("rack2n1", "user:eve"), ("rack[1-2]n1", "user:eve")]


def test_who_may_only_read_freezes_and_thaws_nothing():
    _, ask_limited = cluster("rack1n1", scope="read")

    assert frozen(ask_limited("GET", "/v1/freezes")) == [("rack1n1", "user:eve", 2)]
    assert freeze(ask_limited, "rack1n1").status == 403
    assert ask_limited("DELETE", "/v1/freezes?selector=rack1n1").status == 403


def test_whether_the_brake_is_on_is_told_and_not_of_how_many_nodes():
    backend, ask_limited = cluster()
    assert ask_limited("GET", "/v1/brake").json == {"why": None, "left_ms": 0}
    backend.braked = BrakeView("7 of 16 nodes of rack2 fell silent within 30 s", 90_000)

    assert ask_limited("GET", "/v1/brake").json == {
        "why": "many nodes fell silent",
        "left_ms": 90_000,
    }
    assert ask_limited("DELETE", "/v1/brake").status == 403


async def test_the_audit_has_what_concerns_its_entities(tmp_path):
    declared = [Declare(entity, {}, "user:bob") for entity in (N1, OTHER)]
    async with real_backend(tmp_path, *declared) as backend:
        app = app_of(backend)
        limited = (await backend.tokens.mint(Bearer("eve", Scope.WRITE, LIMIT), 60)).text
        whole = (await backend.tokens.mint(Bearer("ada", Scope.ADMIN), 60)).text

        async def call(method, path, token, body=b""):
            answer = await asked(app, method, path, token, body, dict(HERE))
            assert answer.status < 300, answer.json
            return answer.json

        for node in (N1, OTHER):
            await call("POST", f"/v1/entities/{node}/retry", whole)
            body = b'{"work": "draining", "work_why": "heat"}'
            await call("PATCH", f"/v1/entities/{node}/desired?take=1&why=heat", whole, body)
        await call("DELETE", "/v1/brake", whole)
        freeze = b'{"selector": "rack1n1", "reason": "swap"}'
        await call("POST", "/v1/freezes", limited, freeze)
        await call("DELETE", "/v1/freezes?selector=rack1n1&why=done", limited)

        deeds = (await call("GET", "/v1/audit", limited))["deeds"]
        assert [(one["who"], one["what"], one["why"]) for one in deeds] == [
            ("user:eve", "1 change", "done"),
            ("user:eve", "1 change", "swap"),
            ("user:ada", "2 changes", "heat"),
            ("user:ada", "retry node:rack1n1", None),
            ("site", "1 change", None),
        ]
        assert len((await call("GET", "/v1/audit", whole))["deeds"]) == 8


def test_a_mistyped_name_brings_no_guess_at_the_name_of_another():
    backend, ask_limited = cluster()
    backend.write(Declare(node_id("rock1n7"), {}, "site"))
    backend.write(Declare(node_id("rack1na8"), {}, "site"))

    def advice(name):
        return ask_limited("GET", f"/v1/entities/node:{name}").json["do"]

    assert (
        advice("rack1n7") == "see which there are: haptera get node, or GET /v1/entities?kind=node"
    )
    assert advice("rack1n8").startswith("did you mean node:rack1na8? ")
    assert freeze(ask_limited, "rack1n7").json["do"] == "see which there are: haptera get node"
