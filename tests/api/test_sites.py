"""Site files over HTTP: whose values they change, how they differ, what is in force as one."""

from haptera.api.app import make_app
from haptera.model.changes import Declare, Desired, SetDesired
from haptera.model.entity import node_id
from haptera.site import Sites
from tests.api.asking import ask
from tests.api.fake_backend import FakeBackend

N1 = node_id("n1")
SITE = "cluster: quick\nnodes: {n1: {rack: r1}}\ndesired: {n1: {power: on, agent: up}}\n"


def quick():
    backend = FakeBackend()
    backend.write(
        Declare(N1, {}, "site"),
        SetDesired(N1, "power", "off", "user:eve"),
        SetDesired(N1, "busy", "free", "site"),
    )
    return backend, make_app(backend, Sites("quick"), cluster="quick")


def body(text=SITE):
    return {"files": [{"name": "site.yaml", "text": text}]}


def test_what_differs_is_told_value_by_value_with_its_owner():
    backend, app = quick()
    answer = ask(app, "POST", "/v1/diff", token="read-token", body=body())

    assert (answer.status, backend.revision()) == (200, 3)
    assert answer.json == {
        "revision": 3,
        "differences": [
            {"entity": "node:n1", "name": "rack", "before": None, "after": "r1"},
            {"entity": "node:n1", "name": "agent", "before": None, "after": "up"},
            {"entity": "node:n1", "name": "power", "before": "off", "after": "on",
             "owner": "user:eve"},
            {"entity": "node:n1", "name": "busy", "before": "free", "after": None},
        ],
    }  # fmt: skip


def test_what_belongs_to_others_is_refused_naming_them_unless_it_is_taken():
    backend, app = quick()
    refused = ask(app, "POST", "/v1/apply", token="write-token", body=body())
    assert (refused.status, backend.revision()) == (409, 3)
    assert refused.json["what"] == "power of node:n1 belongs to user:eve, who wants off"
    assert "--take" in refused.json["do"]

    taken = ask(app, "POST", "/v1/apply?take=1", token="write-token", body=body())
    assert taken.status == 200
    assert backend.store[N1].desired == {
        "power": Desired("on", "site"),
        "agent": Desired("up", "site"),
    }
    again = ask(app, "POST", "/v1/diff", token="read-token", body=body())
    assert again.json["differences"] == []


def test_one_value_is_taken_and_given_up_in_ones_own_name():
    backend, app = quick()
    path = "/v1/entities/node:n1/desired"
    refused = ask(app, "PATCH", path, token="write-token", body={"power": "on"})
    assert (refused.status, backend.revision()) == (409, 3)
    assert refused.json["what"] == "power of node:n1 belongs to user:eve, who wants off"
    assert refused.json["do"] == "let user:eve give it up, or take it (--take, take=1)"

    taken = ask(app, "PATCH", f"{path}?take=1", token="write-token", body={"power": "off"})
    assert taken.status == 200
    assert backend.store[N1].desired["power"] == Desired("off", "user:bob")
    ask(app, "PATCH", f"{path}?take=1", token="write-token", body={"power": None, "busy": None})
    assert backend.store[N1].desired == {}


def test_what_is_in_force_is_a_site_file_that_applies_to_nothing():
    _, app = quick()
    answer = ask(app, "GET", "/v1/export", token="read-token")
    text = answer.json["text"]

    assert answer.json["revision"] == 3
    assert "n1: {busy: free, power: off}  # power by user:eve\n" in text
    assert ask(app, "POST", "/v1/diff", token="read-token", body=body(text)).json == {
        "revision": 3,
        "differences": [],
    }
    mine = ask(app, "GET", "/v1/export?owner=site", token="read-token").json["text"]
    assert "n1: {busy: free}\n" in mine
