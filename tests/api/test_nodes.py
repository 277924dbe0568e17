"""Putting a node out: who may, what is answered, and that it is written down."""

from haptera.api.app import make_app
from haptera.site import Sites
from tests.api.asking import ask
from tests.api.fake_backend import FakeBackend


def test_a_node_is_put_out_once_and_it_is_noted_who_wanted_that():
    backend = FakeBackend()
    app = make_app(backend, Sites("quick"), cluster="quick")
    told = [
        ask(app, "DELETE", "/v1/nodes/n1/session?why=stolen", token="admin-token") for _ in range(2)
    ]
    assert [one.status for one in told] == [200, 404]
    assert told[0].json == {"node": "n1", "incarnation": 3}
    assert told[1].json["what"] == "n1 has no session"
    assert [one.what for one in backend.noted] == ["evict n1", "evict n1"]
