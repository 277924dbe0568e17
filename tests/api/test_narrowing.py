"""Each answer that narrows itself to a limited token's entities names no other one."""

from typing import Final

import pytest

from haptera.model.answers.past import Happened, PastView, Sort
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.rest import endpoints
from haptera.rest.endpoint import Endpoint
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend

WALL_S: Final = 1_795_280_400.0
OWN, OTHER = "ours1", "theirs1"
QUERIES: Final = {"/v1/past": f"?at={WALL_S - 60:.0f}"}
# These name no entity at all; the rest has its own test: of the real store, of the stream, of
# numbers.
NAMELESS: Final = {"/v1/brake", "/v1/caller", "/v1/summary"}
ELSEWHERE: Final = {"/v1/audit", "/v1/events", "/v1/samples"}
NARROWING: Final = [
    one
    for one in endpoints.ENDPOINTS
    if one.method == "GET" and one.narrows and "{" not in one.path and one.path not in ELSEWHERE
]


@pytest.fixture(scope="module")
def answers():
    """The answers of each endpoint: to a token that is limited to our node, and to another one."""
    backend = FakeBackend()
    for name in (OWN, OTHER):
        freeze = EntityId("freeze", f"of-{name}", None)
        backend.write(
            Declare(node_id(name), {}, "site"),
            SetDesired(node_id(name), "power", "on", "site"),
            Declare(freeze, {}, "user:eve"),
            SetDesired(freeze, "of", name, "user:eve"),
            SetDesired(freeze, "reason", "heat", "user:eve"),
        )
    entities = [str(node_id(name)) for name in (OWN, OTHER)]
    backend.happenings = [
        Happened(WALL_S - 60, one, Sort.TRIED, "bmc.switch_on", "failed", "no answer")
        for one in entities
    ]
    backend.pasts = {WALL_S - 60: [PastView(one, {}, {}, {}) for one in entities]}
    app = app_of(backend, wall_s=lambda: WALL_S)
    body = {"name": "bob", "scope": "read", "for_s": 3600, "within": OWN}
    limited = ask(app, "POST", "/v1/tokens", token="admin-token", body=body).json["text"]

    def told(endpoint: Endpoint, token: str) -> str:
        answer = ask(app, "GET", endpoint.path + QUERIES.get(endpoint.path, ""), token=token)
        assert answer.status == 200, answer.json
        return answer.body.decode()

    return {one: (told(one, limited), told(one, "admin-token")) for one in NARROWING}


@pytest.mark.parametrize("endpoint", NARROWING, ids=lambda one: one.path)
def test_what_narrows_itself_names_no_other_entity(answers, endpoint):
    limited, whole = answers[endpoint]

    assert OTHER not in limited
    # All that is known names both: so the test can fail.
    assert endpoint.path in NAMELESS or (OWN in limited and OTHER in whole)
