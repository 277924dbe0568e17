"""Merge patches of one entity and of many: what each does, and how each is answered for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.api.writes.batch import ERRORS_MAX
from haptera.model.changes import Cause, Declare, Desired, SetDesired
from haptera.model.effects import Reply
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend

N1, N2, N3 = node_id("n1"), node_id("n2"), node_id("n3")
WEB1 = EntityId("service", "web", "n1")
ON, OFF = {"power": "on"}, {"power": "off"}


def cluster():
    """Node n1 is bob's, n2 the site's, n3 nobody's with a power that eve wants."""
    backend = FakeBackend()
    backend.write(
        Declare(N1, {"rack": "1", "bmc": "10.0.0.1"}, "user:bob"),
        Declare(N2, {"rack": "2"}, "site"),
        Declare(N3, {}, "site"),
        SetDesired(N3, "power", "on", "user:eve"),
        Declare(WEB1, {}, "site"),
    )
    return backend, app_of(backend)


def patch(app, entity, part, body, query="", **headers):
    path = f"/v1/entities/{entity}/{part}{query}"
    return ask(app, "PATCH", path, token="write-token", body=body, headers=headers)


def bulk(app, *patches, query="", token="write-token", **more):
    body = {"patches": list(patches), **more}
    return ask(app, "POST", f"/v1/bulk{query}", token=token, body=body)


def outcomes(answer):
    """Of each patch its entity, its status, and what is wrong."""
    return [
        (one["entity"], one["status"], one.get("problem", {}).get("what"))
        for one in answer.json["results"]
    ]


def powers(backend):
    return {
        one.name: held.desired["power"].value
        for one, held in backend.store.items()
        if "power" in held.desired
    }


def test_attributes_are_patched_by_whom_they_belong_to():
    backend, app = cluster()
    answer = patch(app, N1, "attributes", {"rack": "7", "bmc": None, "platform": "labnode"})
    assert (answer.status, answer.json["attributes"]) == (200, {"rack": "7", "platform": "labnode"})
    assert answer.headers["etag"] == f'"7.{backend.revision()}"'
    refused = patch(app, N2, "attributes", {"rack": "7"})
    assert (refused.status, refused.json["what"], refused.json["do"]) == (
        409,
        "node:n2 was declared by site",
        "have site release it, or take it (--take, take=1)",
    )
    taken = patch(app, N2, "attributes", {"rack": "7"}, "?take=1")
    assert (taken.status, backend.store[N2].attributes) == (200, {"rack": "7"})
    assert backend.store[N2].owner == "user:bob"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"rak": "1"}, Code.UNKNOWN_NAME),
        ({"rack": 1}, Code.SYNTAX),
        ({"rack": "x" * 5000}, Code.LIMIT),
        ([], Code.SYNTAX),
    ],
)
def test_a_patch_that_cannot_be_is_refused_whole(body, code):
    backend, app = cluster()
    answer = patch(app, N1, "attributes", body)
    assert answer.status == 400
    assert answer.json["code"] == code
    assert backend.revision() == 5


def test_a_list_of_tags_matches_where_one_of_them_does():
    _, app = cluster()
    tag = ask(app, "GET", "/v1/entities/node:n1", token="read-token").headers["etag"]
    for matched, status in (('"1.1"', 412), (f'"1.1", {tag}', 200), ("*", 200), (f"W/{tag}", 412)):
        answer = patch(app, N1, "attributes", {"rack": "1"}, **{"if-match": matched})
        assert answer.status == status, matched


def merged(target, change):
    """RFC 7396, section 2, in the words of its pseudocode."""
    if not isinstance(change, dict):
        return change
    if not isinstance(target, dict):
        target = {}
    for name, value in change.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = merged(target.get(name), value)
    return target


names = st.sampled_from(["rack", "bmc", "platform"])
texts = st.sampled_from(["1", "2", "x"])
patches = st.lists(
    st.tuples(
        st.dictionaries(names, texts | st.none()),
        st.dictionaries(st.sampled_from(["power", "busy"]), st.none() | st.just("on")),
    ),
    max_size=5,
)


@given(patches, st.booleans())
def test_patches_do_what_the_standard_says(several, at_once):
    backend, app = cluster()
    attributes, desired = dict(backend.store[N1].attributes), {}
    for each, wanted in several:
        wanted = {name: value for name, value in wanted.items() if name == "power" or not value}
        attributes, desired = merged(attributes, each), merged(desired, wanted)
        if at_once:
            one = {"entity": "node:n1", "attributes": each, "desired": wanted}
            assert bulk(app, one).status == 200
        else:
            assert patch(app, N1, "attributes", each).status == 200
            assert patch(app, N1, "desired", wanted).status == 200
    held = backend.store[N1]
    assert (held.attributes, {name: one.value for name, one in held.desired.items()}) == (
        attributes,
        desired,
    )


def test_each_patch_of_many_is_answered_for_by_itself():
    backend, app = cluster()
    answer = bulk(
        app,
        {"entity": "node:n1", "desired": ON, "attributes": {"rack": "9"}},
        {"entity": "node:n2", "attributes": {"rack": "9"}},
        {"entity": "node:n3", "desired": OFF},
        {"entity": "node:n4", "desired": ON},
        {"entity": "service:web@n1", "desired": {"port": "many"}},
        {"entity": "node:n1", "desired": OFF},
        {"entity": "nonsense", "desired": ON},
        {"entity": "service:web@n1", "if_match": '"7.1"', "desired": {"port": 80}},
    )
    assert answer.status == 207
    assert outcomes(answer) == [
        ("node:n1", 200, None),
        ("node:n2", 409, "node:n2 was declared by site"),
        ("node:n3", 409, "power of node:n3 belongs to user:eve, who wants on"),
        ("node:n4", 404, "there is no node:n4"),
        ("service:web@n1", 400, "service.port must be a whole number, not 'many'"),
        ("node:n1", 400, "node:n1 is patched twice"),
        ("nonsense", 400, answer.json["results"][6]["problem"]["what"]),
        ("service:web@n1", 400, "service:web@n1 is patched twice"),
    ]
    assert (powers(backend), backend.store[N1].attributes["rack"]) == (
        {"n1": "on", "n3": "on"},
        "9",
    )
    assert answer.json["results"][0]["etag"] == f'"7.{backend.revision()}"'
    assert [one.who for one in backend.noted] == ["user:bob"]  # one write


def test_many_patches_are_one_write_and_all_done_is_200():
    backend, app = cluster()
    why = "?why=maintenance&take=1"
    answer = bulk(app, *({"entity": f"node:n{n}", "desired": OFF} for n in (1, 2, 3)), query=why)
    assert (answer.status, powers(backend)) == (200, dict.fromkeys(("n1", "n2", "n3"), "off"))
    assert [(one.who, one.what, one.why) for one in backend.noted] == [
        ("user:bob", "3 changes", "maintenance")
    ]
    assert backend.store[N3].desired["power"] == Desired("off", "user:bob")


def test_all_or_nothing_does_nothing_where_something_cannot_be():
    backend, app = cluster()
    one, other = ({"entity": f"node:n{n}", "desired": OFF} for n in (1, 3))
    answer = bulk(app, one, other, {"entity": "node:n4"}, all_or_nothing=True)
    assert (answer.status, backend.revision()) == (409, 5)
    assert [(each["what"], each["where"]) for each in answer.json["errors"]] == [
        ("power of node:n3 belongs to user:eve, who wants on", "patches[1]"),
        ("there is no node:n4", "patches[2]"),
    ]
    twice = bulk(app, one, one, all_or_nothing=True)
    assert [each["code"] for each in twice.json["errors"]] == [Code.DUPLICATE]
    alone = bulk(app, one, {"entity": "node:n4"}, all_or_nothing=True)
    assert (alone.status, alone.headers["content-type"]) == (404, "application/problem+json")
    assert bulk(app, one, all_or_nothing=True).status == 200
    assert powers(backend) == {"n1": "off", "n3": "on"}


def test_what_the_engine_refuses_is_found_among_the_rest():
    """It says no to the whole of a write, so that halves of it are tried."""

    class Choosy(FakeBackend):
        async def propose(self, changes, if_revision, author):
            if any(change.entity == N2 for change in changes):
                return Reply(1, None, "n2 is not to be touched", Cause.INVALID)
            return await super().propose(changes, if_revision, author)

    backend = Choosy()
    backend.write(*(Declare(one, {}, "site") for one in (N1, N2, N3, WEB1)))
    app = app_of(backend)
    patches = [{"entity": f"node:n{n}", "desired": ON} for n in (1, 2, 3)]
    answer = bulk(app, *patches)
    assert outcomes(answer) == [
        ("node:n1", 200, None),
        ("node:n2", 409, "nothing was written: n2 is not to be touched"),
        ("node:n3", 200, None),
    ]
    assert powers(backend) == {"n1": "on", "n3": "on"}
    whole = bulk(app, *patches, all_or_nothing=True)
    assert (whole.status, whole.json["code"]) == (409, Code.CONFLICT)


def test_a_dry_run_of_many_tells_what_would_be_and_writes_nothing():
    backend, app = cluster()
    answer = bulk(
        app,
        {"entity": "node:n1", "desired": ON},
        {"entity": "node:n3", "desired": OFF},
        {"entity": "node:n2", "desired": ON},
        query="?dry_run=1",
    )
    assert (answer.status, [status for _, status, _ in outcomes(answer)]) == (207, [200, 409, 200])
    assert [plan["nodes"] for plan in answer.json["plans"]] == [3]
    assert (backend.revision(), powers(backend)) == (5, {"n3": "on"})


def test_a_limited_token_patches_only_what_it_is_limited_to():
    _, app = cluster()
    body = {"name": "bob", "scope": "write", "for_s": 60, "within": "n1"}
    text = ask(app, "POST", "/v1/tokens", token="admin-token", body=body).json["text"]
    answer = bulk(
        app,
        {"entity": "node:n1", "desired": ON},
        {"entity": "node:n2", "desired": ON},
        {"entity": "node:n9", "desired": ON},
        token=text,
    )
    assert outcomes(answer) == [
        ("node:n1", 200, None),
        ("node:n2", 403, "the token is limited to n1, which does not include node:n2"),
        ("node:n9", 403, "the token is limited to n1, which does not include node:n9"),
    ]
    dry = bulk(app, {"entity": "node:n1", "desired": OFF}, query="?dry_run=1", token=text)
    assert (dry.status, dry.json["plans"]) == (200, [])


def test_a_full_disk_is_told_of_each():
    backend, app = cluster()
    backend.refusals = ["state.db: disk is full"]
    answer = bulk(app, {"entity": "node:n1", "desired": ON}, {"entity": "node:n4"})
    assert outcomes(answer) == [
        ("node:n1", 507, "nothing was written: state.db: disk is full"),
        ("node:n4", 404, "there is no node:n4"),
    ]


def test_of_many_errors_some_are_told():
    _, app = cluster()
    patches = [{"entity": f"node:x{number}"} for number in range(ERRORS_MAX + 5)]
    answer = bulk(app, *patches, all_or_nothing=True)
    assert (answer.status, len(answer.json["errors"])) == (404, ERRORS_MAX)
