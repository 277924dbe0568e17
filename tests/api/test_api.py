"""The REST interface: what each route answers, to whom, and how it refuses."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.routing import Route

from haptera.api.requests.callers import EntryRules
from haptera.api.requests.endpoint import check_scopes
from haptera.api.routes.page import served_page
from haptera.model.answers.explained import Explained
from haptera.model.answers.graph import DrawingView
from haptera.model.changes import Declare, Desired, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code
from haptera.model.token_scope import Scope
from haptera.rest.endpoints import ENDPOINTS
from haptera.runtime.identity.pki import make_request, new_key
from haptera.runtime.identity.tokens import ApiToken, Bearer
from haptera.runtime.network.peers import UnixPeer
from tests.api.asking import app_of, ask
from tests.api.fake_backend import TOKENS, FakeBackend
from tests.cli.drawing.examples import EXAMPLES

N1, N2 = node_id("n1"), node_id("n2")
WEB1 = EntityId("service", "web", "n1")
SITE = """\
cluster: quick
nodes: {"n[1-2]": {rack: "1"}}
services: {web: {command: "serve {name}"}}
desired:
  n[1-2]: {power: on}
  web@n1: {run: running}
"""


def cluster(*changes):
    backend = FakeBackend()
    if changes:
        backend.write(*changes)
    return backend, app_of(backend)


def quick():
    backend, app = cluster(
        Declare(N1, {"rack": "1"}, "site"),
        SetDesired(N1, "power", "on", "site"),
        Declare(N2, {}, "site"),
        Declare(WEB1, {}, "site"),
    )
    backend.logs[N1] = b"booted\n"
    return backend, app


def apply_body(text=SITE, **more):
    return {"files": [{"text": text, "name": "site.yaml"}], **more}


# Every endpoint with what it takes to be asked, and the least scope that it answers to.
ROUTES = [
    *((one.method, one.example, one.scope) for one in ENDPOINTS),
    *(
        (one.method, f"{one.example}{'&' if '?' in one.example else '?'}dry_run=1", one.dry_scope)
        for one in ENDPOINTS
        if one.dry_scope is not None
    ),
    *(("GET", one.endpoint.path, None) for one in served_page()),
]
REQUEST = make_request(new_key()).decode()
BEARERS = [None, "wrong-token", *TOKENS]


PEERS = {UnixPeer(uid, frozenset()): bearer for uid, bearer in enumerate(TOKENS.values())}
STRANGER = UnixPeer(99, frozenset())


@pytest.mark.parametrize("token", [one for one in TOKENS if one != "report-token"])
def test_who_asks_is_told_what_they_may(token):
    bearer = TOKENS[token]
    told = ask(quick()[1], "GET", "/v1/caller", token=token).json
    assert told == {"name": bearer.name, "scope": bearer.scope, "within": None}


def test_who_is_limited_is_told_to_what():
    backend, app = quick()
    row = ApiToken("t1", Bearer("zoe", Scope.WRITE, "n1*"), b"", 1000.0, 4600.0)
    backend.tokens.minted["hp1.t1.secret"] = row
    told = ask(app, "GET", "/v1/caller", token="hp1.t1.secret").json
    assert told == {"name": "zoe", "scope": "write", "within": "n1*"}


@pytest.mark.parametrize("token", BEARERS)
def test_each_route_answers_exactly_to_those_whom_its_scope_allows(token):
    statuses, expected = {}, {}
    for method, path, scope in ROUTES:
        answer = tried(quick()[1], method, path, token=token)
        statuses[method, path] = (verdict(answer), answer.headers.get("www-authenticate"))
        refused = scope is not None and token not in TOKENS
        status = 401 if refused else verdict_for(scope, TOKENS.get(token))
        expected[method, path] = (status, "Bearer" if refused else None)
    assert statuses == expected


@pytest.mark.parametrize("peer", [STRANGER, *PEERS], ids=str)
def test_each_route_answers_alike_to_whom_the_connection_names(peer):
    statuses, expected = {}, {}
    for method, path, scope in ROUTES:
        backend, _ = quick()
        entry = EntryRules(check_peer=PEERS.get)
        app = app_of(backend, entry=entry)
        answer = tried(app, method, path, peer=peer)
        refused = scope is not None and peer is STRANGER
        wrong = None if scope is None else tried(app, method, path, peer=peer, token="wrong").status
        statuses[method, path] = (verdict(answer), refused and answer.json["code"], wrong)
        status = 403 if refused else verdict_for(scope, PEERS.get(peer))
        expected[method, path] = (
            status,
            refused and Code.FORBIDDEN,
            None if scope is None else 401,
        )
    assert statuses == expected


def tried(app, method, path, **who):
    """The answer to a request that is admitted or refused before its body is looked at."""
    # A bad place in the stream: that it is looked at shows that one was let in.
    headers = {"last-event-id": "nonsense"} if path == "/v1/events" else {}
    return ask(app, method, path, body={}, headers=headers, **who)


def verdict(answer):
    """The refusal of a request; "let in", whatever came of it then."""
    return answer.status if answer.status in (401, 403) or answer.status >= 500 else "let in"


def verdict_for(scope, bearer):
    """The verdict for who may do so much: let in, or told that it is too little."""
    allowed = scope is None or bearer.scope.includes(scope)
    return "let in" if allowed else 403


def test_a_query_that_means_nothing_is_refused_with_what_it_may_have():
    _, app = quick()
    told = {}
    for asked in ("entities?kinds=node", "entities?kind=node&kind=node", "summary?x=1", "past"):
        answer = ask(app, "GET", f"/v1/{asked}", token="read-token")
        told[asked] = (answer.status, answer.json["what"], answer.json["do"])
    nothing = "which is not a parameter of this route"
    assert told == {
        "entities?kinds=node": (
            400,
            f"the query has 'kinds', {nothing}",
            "it may have kind, nodes, select",
        ),
        "entities?kind=node&kind=node": (400, "kind is given twice", "give it once"),
        "summary?x=1": (400, f"the query has 'x', {nothing}", "send none"),
        "past": (400, "the query lacks at", "send at=…"),
    }


def test_no_text_in_a_query_is_too_long_or_too_odd_to_be_refused():
    """Whatever the declared form of a name refuses is refused before it does harm."""
    _, app = quick()
    told = {}
    for one in ENDPOINTS:
        for query in one.queries:
            for wrong in ("x" * 600, "-1", "1e3", "null"):
                path = one.example.partition("?")[0]
                asked = {each.name: each.example for each in one.queries if each.required}
                asked |= {query.name: wrong}
                text = "&".join(f"{name}={value}" for name, value in asked.items())
                headers = {"last-event-id": "nonsense"} if "/events" in path else {}
                answer = ask(
                    app, one.method, f"{path}?{text}", token="admin-token", body={}, headers=headers
                )
                told[one.method, one.path, query.name, wrong[:4]] = answer.status
    assert {place: status for place, status in told.items() if status >= 500} == {}


@pytest.mark.parametrize("method", ["OPTIONS", "PUT"])
def test_all_methods_of_a_path_are_told(method):
    app = app_of(FakeBackend())
    told = ask(app, method, "/v1/freezes")
    assert told.status == (204 if method == "OPTIONS" else 405)
    assert told.headers["allow"] == "GET, POST, DELETE, OPTIONS"


def test_each_endpoint_that_is_declared_is_served_and_no_other():
    app = app_of(FakeBackend())
    served = [route.declared for route in app.routes if not is_page(route.path)]
    assert sorted(served, key=place) == sorted(ENDPOINTS, key=place)


def is_page(path):
    return path == "/" or path.startswith("/page/")


def place(endpoint):
    return (endpoint.path, endpoint.method)


def test_a_route_that_declares_no_scope_keeps_the_api_from_starting():
    with pytest.raises(AssertionError, match="declares no scope"):
        check_scopes([Route("/v1/secret", lambda request: None)])


def test_a_request_for_a_name_that_is_not_ours_is_not_answered():
    _, app = quick()
    for host in ("evil.example", "127.0.0.1.evil.example", "", "a b", "localhost:4270:1"):
        answer = ask(app, "GET", "/v1/health", host=host)
        assert (answer.status, answer.json["code"]) == (421, Code.MISDIRECTED)
    for host in ("127.0.0.1:4270", "[::1]:4270", "LOCALHOST"):
        assert ask(app, "GET", "/v1/health", host=host).status == 200
    named = app_of(FakeBackend(), entry=EntryRules(["head.site"]))
    assert ask(named, "GET", "/v1/health", host="head.site:4270").status == 200


def test_every_answer_has_the_headers_of_safety():
    _, app = quick()
    for path in ("/", "/v1/health", "/v1/summary", "/nowhere"):
        headers = ask(app, "GET", path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "set-cookie" not in headers
        assert "access-control-allow-origin" not in headers


def test_entities_are_listed_by_kind_and_node_set():
    _, app = quick()

    def listed(query):
        answer = ask(app, "GET", f"/v1/entities?{query}", token="read-token")
        return [one["entity"] for one in answer.json["entities"]]

    assert listed("") == ["node:n1", "node:n2", "service:web@n1"]
    assert listed("kind=service") == ["service:web@n1"]
    assert listed("nodes=n[1-1],n7") == ["node:n1", "service:web@n1"]
    assert listed("kind=node&nodes=n[2-3]") == ["node:n2"]
    assert listed("select=service:*@n[1-9]") == ["service:web@n1"]
    assert listed("select=n*&kind=node") == ["node:n1", "node:n2"]
    assert listed("select=node:*%20and%20power=unknown") == ["node:n2"]
    assert listed("select=power!=unknown") == ["node:n1"]
    assert listed("select=desired.run=running%20or%20service.run!=running") == ["service:web@n1"]
    assert listed("select=age(condition)%3C1h&nodes=n1!n2") == ["node:n1", "service:web@n1"]


def test_the_summary_counts_and_names_the_cluster():
    _, app = quick()
    assert ask(app, "GET", "/v1/summary", token="read-token").json == {
        "cluster": "quick",
        "epoch": 7,
        "revision": 4,
        "counts": {"node": {"converged": 1, "idle": 1}, "service": {"idle": 1}},
        "subtrees": {},
        "faults": [],
    }


def test_an_entity_is_explained_where_that_is_asked_for():
    backend, app = quick()
    backend.reasons[N1] = Explained(cost=2, so_that=["so that power is on, as desired"])
    assert ask(app, "GET", "/v1/entities/node:n1", token="read-token").json["explained"] is None
    told = ask(app, "GET", "/v1/entities/node:n1?explain=1", token="read-token").json
    assert told["explained"] == {
        "cost": 2,
        "so_that": ["so that power is on, as desired"],
        "runner_up": None,
        "no_other": False,
        "cheaper": None,
        "nearest": None,
        "offers": [],
        "cut_short": False,
    }
    both = ask(app, "GET", "/v1/entities/node:n1?explain=1&agent=1", token="read-token").json
    assert (both["explained"], both["unasked"]) == (told["explained"], backend.unasked)


def test_applying_a_site_file_twice_changes_something_once():
    backend, app = cluster()
    first = ask(app, "POST", "/v1/apply", token="write-token", body=apply_body())
    assert (first.status, first.json["revision"], len(first.json["changes"])) == (200, 7, 7)
    assert first.json["changes"][1] == {
        "does": "set",
        "entity": "node:n1",
        "name": "power",
        "value": "on",
    }
    assert backend.store[WEB1].desired["command"] == Desired("serve n1", "site")
    second = ask(app, "POST", "/v1/apply", token="write-token", body=apply_body())
    assert (second.status, second.json["revision"], second.json["changes"]) == (200, 7, [])


def test_a_dry_run_shows_what_would_be_and_writes_nothing():
    backend, app = quick()
    answer = ask(app, "POST", "/v1/apply?dry_run=1", token="read-token", body=apply_body())
    assert [one["does"] for one in answer.json["changes"]] == ["declare", "set", "set", "set"]
    assert (answer.json["plan"]["nodes"], answer.json["wide"]) == (2, False)
    assert backend.revision() == 4


def test_a_bad_site_file_changes_nothing_and_each_error_is_told():
    backend, app = quick()
    text = SITE.replace("power: on", "power: onn") + "foo: 1\n"
    answer = ask(app, "POST", "/v1/apply", token="write-token", body=apply_body(text))
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status, backend.revision()) == (400, 4)
    assert answer.json["errors"] == [
        {
            "code": "invalid-value",
            "what": "node.power cannot be 'onn'",
            "where": "site.yaml:5:19",
            "do": "did you mean on? there are hung, off, on",
        },
        {
            "code": "unknown-name",
            "what": "unknown key foo",
            "where": "site.yaml:7:1",
            "do": "there are budgets, cluster, controllers, defaults, desired, entities,"
            " fault_groups, groups, include, kinds, lab, modules, nodes, policies, profiles,"
            " services",
        },
    ]


def test_what_belongs_to_another_owner_is_a_conflict_that_names_the_owner():
    backend, app = quick()
    backend.write(SetDesired(N2, "power", "off", "user:eve"))
    answer = ask(app, "POST", "/v1/apply", token="write-token", body=apply_body())
    assert answer.status == 409
    assert answer.json["code"] == Code.OWNED
    assert answer.json["what"] == "power of node:n2 belongs to user:eve, who wants off"
    patch = ask(
        app, "PATCH", "/v1/entities/node:n1/desired", token="write-token", body={"power": "off"}
    )
    assert patch.status == 409
    assert patch.json["code"] == Code.OWNED
    assert patch.json["what"] == "power of node:n1 belongs to site, who wants on"


def test_a_write_that_lost_a_race_is_made_again_for_what_is_there_now():
    backend, app = quick()
    backend.meanwhile = lambda: backend.write(SetDesired(N2, "busy", "free", "user:eve"))
    assert ask(app, "POST", "/v1/apply", token="write-token", body=apply_body()).status == 200
    assert {name: held.owner for name, held in backend.store[N2].desired.items()} == {
        "busy": "user:eve",
        "power": "site",
    }


def test_a_write_meant_for_an_older_revision_is_refused():
    backend, app = quick()
    body = apply_body(if_revision=3)
    answer = ask(app, "POST", "/v1/apply", token="write-token", body=body)
    assert (answer.status, answer.json["code"]) == (412, Code.CHANGED)
    assert backend.revision() == 4


def test_a_full_disk_is_told_and_nothing_holds():
    backend, app = quick()
    backend.refusals = ["state.db: disk is full"]
    answer = ask(app, "POST", "/v1/apply", token="write-token", body=apply_body())
    assert (answer.status, answer.json["code"]) == (507, Code.STORAGE_FAILED)
    assert answer.json["what"] == "nothing was written: state.db: disk is full"
    assert backend.revision() == 4


def test_a_user_sets_and_unsets_under_their_own_name():
    backend, app = quick()
    path = "/v1/entities/service:web@n1/desired"
    body = {"run": "stopped", "port": 8080}
    answer = ask(app, "PATCH", path, token="write-token", body=body)
    assert answer.status == 200
    assert backend.store[WEB1].desired == {
        "port": Desired(8080, "user:bob"),
        "run": Desired("stopped", "user:bob"),
    }
    assert answer.headers["etag"] == '"7.6"'
    ask(app, "PATCH", path, token="write-token", body={"port": None, "command": None})
    assert list(backend.store[WEB1].desired) == ["run"]


def test_a_patch_of_what_changed_meanwhile_is_refused():
    _, app = quick()
    path = "/v1/entities/node:n2"
    tag = ask(app, "GET", path, token="read-token").headers["etag"]

    def patch(value):
        return ask(
            app,
            "PATCH",
            f"{path}/desired",
            token="write-token",
            body={"power": value},
            headers={"if-match": tag},
        )

    assert patch("on").status == 200
    assert patch("off").status == 412


def test_an_entity_is_drawn_as_the_engine_sees_it():
    backend, app = quick()
    backend.graphs[N1] = drawing = EXAMPLES["chain"]
    answer = ask(app, "GET", "/v1/entities/node:n1/graph", token="read-token")
    assert msgspec.json.decode(answer.body, type=DrawingView) == drawing


def test_trying_again_is_asked_of_the_engine():
    backend, app = quick()
    ask(app, "POST", "/v1/entities/service:web@n1/retry", token="write-token")
    assert backend.asked == [WEB1]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/v1/nothing", b"", 404, Code.NO_ROUTE),
        ("DELETE", "/v1/summary", b"", 405, Code.METHOD),
        ("GET", "/v1/entities/node:n9", b"", 404, Code.NOT_FOUND),
        ("POST", "/v1/entities/node:n9/retry", b"", 404, Code.NOT_FOUND),
        ("GET", "/v1/entities/n9", b"", 400, Code.SYNTAX),
        ("GET", "/v1/entities?kind=nod", b"", 400, Code.UNKNOWN_NAME),
        ("GET", "/v1/entities?nodes=n[1-", b"", 400, Code.SYNTAX),
        ("GET", "/v1/entities?select=node:n1@n2", b"", 400, Code.SYNTAX),
        ("GET", "/v1/entities/node:n1?agent=yes", b"", 400, Code.INVALID),
        ("GET", "/v1/entities/node:n9/graph", b"", 404, Code.NOT_FOUND),
        ("GET", "/v1/entities/node:n2/log", b"", 404, Code.NOT_FOUND),
        ("POST", "/v1/apply?dry_run=yes", b"", 400, Code.INVALID),
        ("POST", "/v1/apply", b"", 400, Code.SYNTAX),
        ("POST", "/v1/apply", b"[]", 400, Code.SYNTAX),
        (
            "POST",
            "/v1/apply",
            b'{"files": [{"text": "", "nam": ""}]}',
            400,
            Code.SYNTAX,
        ),
        ("POST", "/v1/apply", b" " * 8_388_609, 413, Code.BODY_TOO_LARGE),
        ("POST", "/v1/freezes", b" " * 1_048_577, 413, Code.BODY_TOO_LARGE),
        ("PATCH", "/v1/entities/:/desired", b"{}", 400, Code.LIMIT),
        ("PATCH", "/v1/entities/node:n9/desired", b'{"power":null}', 404, Code.NOT_FOUND),
        ("PATCH", "/v1/entities/node:n1/desired", b'{"":null}', 400, Code.UNKNOWN_NAME),
        ("PATCH", "/v1/entities/node:n1/desired", b"\xff", 400, Code.SYNTAX),
        ("PATCH", "/v1/entities/node:n1/desired", b"[" * 9999, 400, Code.SYNTAX),
        ("PATCH", "/v1/entities/node:n2/desired", b'{"powr":"on"}', 400, Code.UNKNOWN_NAME),
        (
            "PATCH",
            "/v1/entities/node:n2/desired",
            b'{"power":[]}',
            400,
            Code.SYNTAX,
        ),
    ],
)
def test_bad_requests_have_a_status_and_a_code_and_change_nothing(method, path, body, status, code):
    backend, app = quick()
    answer = ask(app, method, path, token="admin-token", body=body)
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["status"] == status
    assert answer.json["code"] == code
    assert answer.json["do"]
    assert backend.revision() == 4


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
bodies = st.one_of(
    st.binary(max_size=40),
    json_values.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(st.sampled_from(["power", "busy", "port", "x"]), json_values).map(
        lambda value: json.dumps(value).encode()
    ),
    st.lists(st.fixed_dictionaries({"text": st.text(), "name": st.text()})).map(
        lambda files: json.dumps({"files": files, "constants": {}}).encode()
    ),
)
paths = st.sampled_from([path for _, path, _ in ROUTES if path != "/v1/events"])


@given(st.sampled_from(["GET", "POST", "PATCH"]), paths, bodies, st.text(max_size=8))
def test_no_input_is_answered_with_a_fault_of_ours(method, path, body, noise):
    _, app = quick()
    entity = path.replace("n1", noise) if noise else path
    assert ask(app, method, entity, token="admin-token", body=body).status < 500
