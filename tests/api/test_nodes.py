"""Inviting a node and overriding its permit: who may, what is answered, and that it is noted."""

from haptera.model.changes import Declare
from haptera.model.entity import node_id
from haptera.model.errors import Code
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend


def test_who_may_run_commands_on_a_node_may_invite_it_and_no_other_and_that_is_noted():
    backend = FakeBackend()
    backend.write(Declare(node_id("n1"), {}, "site"), Declare(node_id("n2"), {}, "site"))
    app = app_of(backend)

    def asked(entity, token):
        return ask(app, "POST", f"/v1/entities/{entity}/invitation?why=joins", token=token)

    assert asked("node:n1", "write-token").status == 403
    assert backend.noted == []
    assert asked("node:n9", "exec-token").status == 404
    assert asked("module:jobs@n1", "exec-token").status == 400
    assert asked("node:n1", "exec-token").json == {
        "token": "hp1.n1.secret",
        "ca": "an authority",
        "parent": "127.0.0.1:4271",
    }
    assert [(one.who, one.what) for one in backend.noted] == [("user:kim", "invite n1: joins")]


def test_an_admin_alone_overrides_a_permit_and_says_why():
    backend = FakeBackend()
    backend.write(Declare(node_id("n1"), {}, "site"))
    app = app_of(backend)

    def asked(query, node="n1", token="admin-token"):
        return ask(app, "POST", f"/v1/nodes/{node}/override{query}", token=token)

    assert asked("?why=hung", token="write-token").status == 403
    assert asked("").json["code"] == Code.MISSING
    assert asked("?why=hung", node="n9").status == 404
    assert (backend.overridden, backend.noted) == ([], [])
    assert asked("?why=hung").json == {"node": "n1", "for_s": 600}
    assert backend.overridden == ["n1"]
    assert [(one.who, one.what) for one in backend.noted] == [
        ("user:ada", "override the permit of n1: hung")
    ]
