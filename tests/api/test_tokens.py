"""Tokens over REST: who makes them, what one that is limited is let in to, and taking them back."""

import pytest

from haptera.model.answers.past import Happened, PastView, Sort
from haptera.model.changes import Declare
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code
from haptera.rest.endpoints import ENDPOINTS
from haptera.runtime.identity.pki import make_request, new_key
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend

N1, N2, WEB = node_id("rack1n1"), node_id("rack2n1"), EntityId("service", "web", "rack1n1")

REQUEST = make_request(new_key()).decode()


def cluster():
    backend = FakeBackend()
    backend.write(*(Declare(entity, {}, "site") for entity in (N1, N2, WEB)))
    return backend, app_of(backend)


def make(app, *, token="admin-token", **body):
    body = {"name": "eve", "scope": "write", "for_s": 3600, **body}
    return ask(app, "POST", "/v1/tokens", token=token, body=body)


def test_a_token_is_told_once_and_listed_without_its_secret():
    backend, app = cluster()
    answer = make(app, within="rack1n*")
    view = {"id": "t1", "name": "eve", "scope": "write", "within": "rack1n*"}
    view |= {"made_s": 1000, "expires_s": 4600}
    assert (answer.status, answer.json) == (201, {"token": view, "text": "hp1.t1.secret"})
    assert ask(app, "GET", "/v1/tokens", token="admin-token").json == {"tokens": [view]}
    assert [one.what for one in backend.noted] == ["make token t1: write for eve"]


def test_a_revoked_token_is_none():
    backend, app = cluster()
    text = make(app).json["text"]
    assert ask(app, "GET", "/v1/summary", token=text).status == 200
    assert ask(app, "DELETE", "/v1/tokens/t1", token="admin-token").json["name"] == "eve"
    assert ask(app, "GET", "/v1/summary", token=text).status == 401
    assert ask(app, "DELETE", "/v1/tokens/t1", token="admin-token").status == 404
    assert backend.noted[-1].what == "revoke token t1 of eve"


def test_a_limited_token_sees_and_changes_what_it_is_limited_to_and_nothing_else():
    _, app = cluster()
    text = make(app, within="rack1n*").json["text"]

    def tried(method, path, body=b""):
        return ask(app, method, path, token=text, body=body)

    seen = tried("GET", "/v1/entities").json["entities"]
    assert [one["entity"] for one in seen] == ["node:rack1n1", "service:web@rack1n1"]
    assert tried("GET", "/v1/entities?nodes=rack2n1").json["entities"] == []
    assert tried("GET", "/v1/summary").json["counts"] == {
        "node": {"idle": 1},
        "service": {"idle": 1},
    }
    guess = tried("GET", "/v1/entities?select=service:web@rack1n1 and node.power=on")
    assert (guess.status, guess.json["code"]) == (403, Code.OUTSIDE_LIMIT)
    on = {"power": "on"}
    assert tried("PATCH", "/v1/entities/node:rack1n1/desired", on).status == 200
    refused = tried("PATCH", "/v1/entities/node:rack2n1/desired", on)
    assert (refused.status, refused.json["code"]) == (403, Code.OUTSIDE_LIMIT)
    assert tried("GET", "/v1/entities/module:web").status == 403


def test_a_limited_token_reads_the_past_of_what_it_is_limited_to():
    backend, app = cluster()
    text = make(app, within="rack1n*").json["text"]
    for entity in ("node:rack1n1", "node:rack2n1"):
        backend.happenings.append(Happened(5.0, entity, Sort.SEEN, "power", "on"))
        backend.pasts.setdefault(5, []).append(PastView(entity, {}, {}, {}, None, None))

    def told(path, member):
        found = ask(app, "GET", path, token=text).json[member]
        return {one["entity"] for one in found}

    here = {"node:rack1n1", "service:web@rack1n1"}
    assert told("/v1/history", "changes") == here
    assert told("/v1/history?select=node:*", "changes") == {"node:rack1n1"}
    assert told("/v1/history?select=rack2n1 or service:*", "changes") == {"service:web@rack1n1"}
    assert told("/v1/happenings", "happened") == {"node:rack1n1"}
    assert told("/v1/past?at=5", "entities") == {"node:rack1n1"}
    assert ask(app, "GET", "/v1/history?select=power=on", token=text).status == 400


def test_what_is_about_the_whole_cluster_is_refused_to_a_limited_token():
    _, app = cluster()
    text = make(app, scope="admin", within="rack1n*").json["text"]
    whole = [
        one
        for one in ENDPOINTS
        if one.scope is not None and not one.narrows and "{entity}" not in one.path
    ]
    assert len(whole) > 10
    assert all("freeze" not in one.path and "audit" not in one.path for one in whole)
    for one in whole:
        answer = ask(app, one.method, one.example, token=text)
        assert (answer.status, answer.json["code"]) == (403, Code.OUTSIDE_LIMIT), one.path


def test_a_certificate_is_listed_and_taken_back_as_a_token_is():
    backend, app = cluster()
    body = {"name": "eve", "scope": "write", "for_s": 60, "request": REQUEST, "within": "rack1n*"}
    answer = ask(app, "POST", "/v1/certificates", token="admin-token", body=body)
    view = {"id": "t1", "name": "eve", "scope": "write", "within": "rack1n*"}
    view |= {"made_s": 1000, "expires_s": 1060}
    made = {"token": view, "certificate": "certificate", "authority": "authority"}
    assert (answer.status, answer.json) == (201, made)
    assert ask(app, "GET", "/v1/tokens", token="admin-token").json == {"tokens": [view]}
    assert ask(app, "DELETE", "/v1/tokens/t1", token="admin-token").status == 200
    assert [one.what for one in backend.noted] == [
        "certify t1: write for eve",
        "revoke token t1 of eve",
    ]


@pytest.mark.parametrize("request_", ["", "nonsense", REQUEST.replace("A", "B")])
def test_what_asks_for_no_certificate_is_refused(request_):
    backend, app = cluster()
    body = {"name": "eve", "scope": "read", "for_s": 60, "request": request_}
    answer = ask(app, "POST", "/v1/certificates", token="admin-token", body=body)
    assert (answer.status, answer.json["what"]) == (400, "not a certificate request")
    assert backend.tokens.minted == {}


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"name": "a b"}, "'a b' is not a user name"),
        ({"scope": "root"}, "Invalid enum value 'root' - at `$.scope`"),
        ({"for_s": 0}, "Expected `int` >= 1 - at `$.for_s`"),
        ({"within": "power=off"}, "a token is limited by names alone"),
    ],
)
def test_what_no_token_can_be_is_refused(wrong, what):
    _, app = cluster()
    answer = make(app, **wrong)
    assert (answer.status, answer.json["what"]) == (400, what)
