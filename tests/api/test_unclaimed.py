"""Machines that are no node's: which are told, and what a claim of one changes or is refused."""

import pytest

from haptera.model.changes import Declare
from haptera.model.entity import node_id
from haptera.model.errors import Code
from haptera.rest.unclaimed import UnclaimedView
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend

NEW, KNOWN = "52:54:00:00:00:03", "52:54:00:00:00:01"
N1, N3 = node_id("n1"), node_id("n3")


def view(mac):
    return UnclaimedView(mac, "BIOS", "PXEClient", 2, 1.0, 3.0)


@pytest.fixture
def backend():
    one = FakeBackend()
    one.write(Declare(N1, {"mac": KNOWN.upper().replace(":", "-")}, "site"))
    one.write(Declare(N3, {"rack": "r1"}, "site"))
    one.strange = [view(NEW), view(KNOWN)]
    return one


def asked(backend, mac, node="n3", token="admin-token"):
    app = app_of(backend)
    return ask(app, "POST", f"/v1/nodes/{node}/claim?why=slot", token=token, body={"mac": mac})


def test_who_is_no_nodes_is_told_and_who_is_one_is_not(backend):
    app = app_of(backend)
    told = ask(app, "GET", "/v1/unclaimed", token="read-token")
    assert [one["mac"] for one in told.json["machines"]] == [NEW]


def test_a_claimed_machine_is_the_node_and_the_node_stays_its_owners(backend):
    told = asked(backend, NEW.upper())
    assert (told.status, told.json) == (200, {"node": "n3", "mac": NEW, "owner": "site"})
    held = backend.declared(N3)
    assert (held.attributes, held.owner) == ({"rack": "r1", "mac": NEW}, "site")
    assert (backend.noted[-1].who, backend.noted[-1].what) == ("user:ada", f"claim {NEW} as n3")
    assert backend.asked == [N3]
    again = asked(backend, NEW)
    assert (again.status, again.json["what"]) == (409, f"n3 already has the MAC address {NEW}")


@pytest.mark.parametrize(
    ("mac", "node", "code", "what"),
    [
        (KNOWN, "n3", Code.CONFLICT, f"{KNOWN} already belongs to n1"),
        (NEW, "n1", Code.CONFLICT, "n1 already has the MAC address 52-54-00-00-00-01"),
        ("52:54:00:00:00:04", "n3", Code.NOT_FOUND, "has not requested an address recently"),
        (NEW, "n9", Code.NOT_FOUND, "there is no node:n9"),
        ("52:54", "n3", Code.SYNTAX, "'52:54' is not a MAC address"),
    ],
)
def test_what_cannot_be_claimed_is_refused_in_words(backend, mac, node, code, what):
    told = asked(backend, mac, node)
    assert told.json["code"] == code
    assert what in told.json["what"]
    assert backend.asked == []
    assert backend.declared(N3).attributes == {"rack": "r1"}


def test_who_may_only_write_claims_nothing(backend):
    assert asked(backend, NEW, token="write-token").json["code"] == Code.FORBIDDEN
