"""The past over REST: what was changed, what was asked for, and undoing a write."""

import time
from pathlib import Path

import msgspec

from haptera.api.routes.history import CLOCKS_APART_S_MAX
from haptera.model.answers.past import Happened, PastView, Sort
from haptera.model.changes import Author, Declare, Desired, SetDesired, UnsetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code
from haptera.runtime.store.history_sql import read_changes, read_deeds, reading
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend

N1, N2 = node_id("n1"), node_id("n2")
WEB = EntityId("service", "web", "n1")
NOWHERE = Path("/nowhere/state.db")
SITE, EVE = Author("user:ada", "first light"), Author("user:eve")


def cluster():
    """What a site file has written (1 to 3), then eve (4)."""
    backend = FakeBackend()
    backend.write(
        Declare(N1, {}, "site"),
        Declare(WEB, {}, "site"),
        SetDesired(N1, "power", "on", "site"),
        author=SITE,
    )
    backend.write(SetDesired(WEB, "port", 80, "user:eve"), author=EVE)
    return backend, app_of(backend)


def read(app, path):
    return ask(app, "GET", path, token="read-token")


def revert(app, revision, *, token="write-token", query=""):
    return ask(app, "POST", f"/v1/revert/{revision}{query}", token=token)


class Unreadable(FakeBackend):
    """One whose state file is gone."""

    def past(self, chosen, *, before, count_max):
        return read_changes(NOWHERE, chosen, before=before, count_max=count_max)

    def deeds(self, within, count_max):
        return read_deeds(NOWHERE, within, count_max=count_max)

    def happened(self, chosen, count_max):
        with reading(NOWHERE):
            raise AssertionError


def test_a_file_that_cannot_be_read_is_no_fault_of_who_asks():
    app = app_of(Unreadable())
    for path in ("/v1/history", "/v1/audit", "/v1/happenings"):
        told = ask(app, "GET", path, token="admin-token")
        assert (told.status, told.json["code"]) == (503, Code.STORAGE_UNREADABLE)


def test_the_past_is_selected_by_names():
    _, app = cluster()
    assert read(app, "/v1/history?select=node:n*%20and%20not%20n2").status == 200
    for select in ("power=on", "@gpu", "age(power)%3E1m"):
        answer = read(app, f"/v1/history?select={select}")
        assert answer.status == 400
        assert answer.json["what"].endswith(": past states are selected by names")


def test_each_change_is_told_with_who_made_it_and_why():
    _, app = cluster()
    page = read(app, "/v1/history?select=node:n1").json
    site = {"revision": 3, "at_s": 1000.0, "entity": "node:n1", "before": None, "owner": "site"}
    site |= {"owner_before": None, "who": "user:ada", "why": "first light"}
    assert page == {
        "changes": [
            {**site, "name": "power", "after": "on"},
            {**site, "name": None, "after": "{}"},
        ],
        "before": None,
    }


def test_pages_follow_one_another():
    _, app = cluster()
    first = read(app, "/v1/history?limit=3").json
    second = read(app, f"/v1/history?limit=3&before={first['before']}").json
    names = [(one["entity"], one["name"]) for one in first["changes"] + second["changes"]]
    assert names == [
        ("service:web@n1", "port"),
        ("node:n1", "power"),
        ("service:web@n1", None),
        ("node:n1", None),
    ]
    assert second["before"] is None


def test_what_is_no_number_is_refused_with_what_would_do():
    _, app = cluster()
    answers = [read(app, f"/v1/history?{query}") for query in ("limit=0", "limit=x", "before=-1")]
    assert [(one.status, one.json["what"], one.json["do"]) for one in answers] == [
        (400, "limit='0'", "write a whole number from 1 to 10000"),
        (400, "limit='x'", "write a whole number from 1 to 10000"),
        (400, "before='-1'", "write a whole number from 1"),
    ]


def test_a_write_is_undone_as_a_whole_and_that_is_history_too():
    backend, app = cluster()
    planned = revert(app, 4, token="read-token", query="?dry_run=1").json
    assert planned["changes"] == [{"does": "unset", "entity": "service:web@n1", "name": "port"}]
    assert backend.store[WEB].desired == {"port": Desired(80, "user:eve")}

    assert revert(app, 4).json == planned | {"revision": 5}
    assert backend.store[WEB].desired == {}
    (last,) = read(app, "/v1/history?limit=1").json["changes"]
    assert (last["who"], last["why"], last["before"], last["after"]) == (
        "user:bob",
        "revert of 4",
        80,
        None,
    )
    assert revert(app, 5).status == 200
    assert backend.store[WEB].desired == {"port": Desired(80, "user:eve")}


def test_what_was_changed_since_is_not_undone_and_all_of_it_is_named():
    backend, app = cluster()
    backend.write(SetDesired(N1, "power", "off", "site"))
    answer = revert(app, 2)
    assert answer.status == 409
    assert [(one["where"], one["what"]) for one in answer.json["errors"]] == [
        ("node:n1", "power is off now, but was made on then: it changed since"),
        ("service:web@n1", "was given port since it was declared"),
    ]
    backend.write(UnsetDesired(WEB, "port"), SetDesired(N1, "power", "on", "site"))
    assert revert(app, 2).status == 200
    assert backend.store == {}


def test_what_is_in_the_way_of_many_is_told_once():
    backend = FakeBackend()
    nodes = [node_id(f"n{number}") for number in range(1, 5)]
    app = app_of(backend)
    backend.write(*(Declare(one, {}, "site") for one in nodes), author=SITE)
    backend.write(*(SetDesired(one, "power", "on", "user:eve") for one in nodes[:3]), author=EVE)
    answer = revert(app, 4)
    assert [(one["where"], one["what"]) for one in answer.json["errors"]] == [
        ("node:n[1-3]", "was given power since it was declared"),
    ]


def test_a_revision_that_nobody_knows_is_not_found():
    _, app = cluster()
    for revision in (0, 99, "x", "1" * 30):
        answer = revert(app, revision)
        assert (answer.status, answer.json["what"]) == (
            404,
            f"no change of revision {revision} is known",
        )


def test_the_audit_has_all_that_was_asked_for():
    _, app = cluster()
    ask(app, "POST", "/v1/entities/node:n1/retry", token="write-token")
    ask(app, "DELETE", "/v1/brake", token="admin-token")
    ask(
        app,
        "PATCH",
        "/v1/entities/service:web@n1/desired?why=too%20slow",
        token="admin-token",
        body={"command": "web"},
    )
    deeds = read(app, "/v1/audit").json["deeds"]
    assert [(one["who"], one["what"], one["revision"], one["why"]) for one in deeds] == [
        ("user:ada", "1 change", 5, "too slow"),
        ("user:ada", "release the brake", None, None),
        ("user:bob", "retry node:n1", None, None),
        ("user:eve", "1 change", 4, None),
        ("user:ada", "3 changes", 3, "first light"),
    ]


def test_how_it_was_and_what_happened_is_told_of_what_is_selected():
    backend, app = cluster()
    one = PastView("node:n1", {}, {"power": "on"}, {"power": "off?"}, "acting", "switches on")
    other = PastView("node:n2", {}, {}, {})
    backend.pasts[5] = [one, other]
    assert read(app, "/v1/past?at=5&select=node:n1").json == {
        "at_s": 5.0,
        "entities": [msgspec.to_builtins(one)],
    }
    now = int(time.time())
    assert read(app, f"/v1/past?at={now + CLOCKS_APART_S_MAX - 5}").status == 200
    future = read(app, f"/v1/past?at={now + CLOCKS_APART_S_MAX + 60}")
    assert (future.status, future.json["do"]) == (400, "give a time in the past")
    missing = read(app, "/v1/past")
    assert (missing.status, missing.json["code"]) == (400, Code.MISSING)

    began = Happened(1.0, "", Sort.BEGUN)
    backend.happenings = [Happened(2.0, "node:n2", Sort.GONE), began]
    assert read(app, "/v1/happenings?select=node:n1").json == {
        "happened": [msgspec.to_builtins(began)]
    }


def test_a_reason_is_no_novel():
    _, app = cluster()
    answer = ask(app, "POST", f"/v1/revert/4?why={'x' * 501}", token="write-token")
    assert (answer.status, answer.json["code"]) == (400, Code.LIMIT)
