"""Idempotency keys over REST: what was asked with one is done once, and answered alike."""

import asyncio

import pytest

from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from haptera.model.errors import Code
from haptera.rest.endpoints import ENDPOINTS
from haptera.runtime.identity.tokens import Scope
from haptera.runtime.store.keyed import ANSWER_BYTES_MAX
from tests.api.asking import Answer, app_of, ask, asked
from tests.api.fake_backend import FakeBackend

N1, N2 = node_id("n1"), node_id("n2")
DESIRED = "/v1/entities/node:n1/desired"
ON, OFF = {"power": "on"}, {"power": "off"}


def cluster():
    backend = FakeBackend()
    backend.write(Declare(N1, {}, "site"), Declare(N2, {}, "site"))
    return backend, app_of(backend)


def keyed(app, key, body=ON, *, method="PATCH", path=DESIRED, token="write-token", **headers):
    headers = {"idempotency-key": key, **headers}
    return ask(app, method, path, token=token, body=body, headers=headers)


def same(one: Answer, other: Answer):
    """Whether an answer is the other again, and says so."""
    replayed = {
        name: text for name, text in other.headers.items() if name != "idempotency-replayed"
    }
    return (
        (one.status, one.body, one.headers) == (other.status, other.body, replayed)
        and "idempotency-replayed" not in one.headers
        and other.headers.get("idempotency-replayed") == "true"
    )


def told(answer):
    return answer.status, answer.json.get("code")


def test_what_was_done_with_a_key_is_not_done_again():
    backend, app = cluster()
    first = keyed(app, "k1")
    backend.write(SetDesired(N1, "power", "off", "user:bob"))
    assert same(first, keyed(app, "k1"))
    assert same(first, keyed(app, '"k1"'))  # as the standard quotes it
    assert backend.store[N1].desired["power"].value == "off"
    assert keyed(app, "k2").json["desired"]["power"]["value"] == "on"


def test_another_request_with_the_same_key_is_refused():
    backend, app = cluster()
    assert keyed(app, "k").status == 200
    others = [
        keyed(app, "k", OFF),
        keyed(app, "k", path="/v1/entities/node:n2/desired"),
        keyed(app, "k", path=f"{DESIRED}?take=1"),
        keyed(app, "k", **{"if-match": "*"}),
    ]
    assert [told(one) for one in others] == [(422, Code.KEY_REUSED)] * 4
    assert backend.revision() == 3


def test_each_principal_has_keys_of_its_own():
    _, app = cluster()
    assert keyed(app, "k").status == 200
    other = keyed(app, "k", path=f"{DESIRED}?take=1", token="admin-token")
    assert other.json["desired"]["power"]["owner"] == "user:ada"


def test_a_key_is_looked_at_only_for_whom_the_scope_allows():
    backend, app = cluster()
    assert keyed(app, "k", token="read-token").status == 403
    assert keyed(app, "k", token="wrong").status == 401
    assert keyed(app, "k").status == 200
    assert keyed(app, "k", token="wrong").status == 401
    assert backend.revision() == 3


def test_a_refused_request_may_be_made_again_with_its_key():
    backend, app = cluster()
    assert keyed(app, "k", path="/v1/entities/node:n3/desired").status == 404
    assert keyed(app, "k", {"powr": "on"}).status == 400
    backend.write(SetDesired(N1, "power", "off", "user:eve"))
    assert keyed(app, "k").status == 409
    backend.write(SetDesired(N1, "power", "off", "user:bob"))
    assert keyed(app, "k").status == 200


def test_what_failed_is_not_known_to_be_undone():
    backend, app = cluster()
    backend.refusals = ["state.db: disk is full"]
    assert keyed(app, "k").status == 507
    assert told(keyed(app, "k")) == (409, Code.KEY_UNSETTLED)
    assert told(keyed(app, "k", OFF)) == (422, Code.KEY_REUSED)
    assert keyed(app, "k2").status == 200


def test_while_a_request_is_under_way_its_key_is_a_conflict():
    backend, app = cluster()
    again = []

    async def twice():
        loop = asyncio.get_running_loop()
        headers = {"host": "127.0.0.1:4270", "idempotency-key": "k"}

        def meanwhile():
            one = asked(app, "PATCH", DESIRED, "write-token", b'{"power":"on"}', dict(headers))
            again.append(loop.create_task(one))

        backend.meanwhile = meanwhile
        slow = backend.propose

        async def propose(*arguments):
            answer = await slow(*arguments)
            await again[0]
            return answer

        backend.propose = propose
        return await asked(app, "PATCH", DESIRED, "write-token", b'{"power":"on"}', dict(headers))

    first = asyncio.run(twice())
    assert first.status == 200
    assert told(again[0].result()) == (409, Code.KEY_UNSETTLED)
    assert same(first, keyed(app, "k", b'{"power":"on"}'))


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 129, "é", "a,b", '""'])
def test_what_is_no_key_is_refused(key):
    backend, app = cluster()
    answer = keyed(app, key.encode().decode("latin-1"))
    assert (answer.status, answer.json["where"]) == (400, "the header Idempotency-Key")
    assert backend.revision() == 2


def test_a_dry_run_needs_no_key_and_keeps_none():
    backend, app = cluster()
    body = {"patches": [{"entity": "node:n1", "desired": ON}]}
    dry = keyed(app, "k", body, method="POST", path="/v1/bulk?dry_run=1")
    assert (dry.status, backend.revision()) == (200, 2)
    done = keyed(app, "k", body, method="POST", path="/v1/bulk")
    assert (done.status, backend.revision()) == (200, 3)


def test_an_answer_too_long_to_be_kept_is_said_to_have_been_given():
    class Wordy(FakeBackend):
        def entity(self, entity):
            self.say(entity, why=str(list(range(100_000))))
            return super().entity(entity)

    backend = Wordy()
    backend.write(Declare(N1, {}, "site"))
    app = app_of(backend)
    first = keyed(app, "k")
    assert (first.status, len(first.body) > ANSWER_BYTES_MAX) == (200, True)
    assert told(keyed(app, "k")) == (409, Code.KEY_UNSETTLED)


def test_all_that_writes_heeds_a_key_or_says_why_it_does_not():
    for one in ENDPOINTS:
        writes = one.method != "GET" and one.scope is not Scope.READ
        assert (one.keyed + (one.unkeyed is not None)) == writes, f"{one.method} {one.path}"


def test_a_key_is_refused_where_one_would_trust_in_vain():
    backend, app = cluster()
    body = {"name": "eve", "scope": "read", "for_s": 60}
    refused = keyed(app, "k", body, method="POST", path="/v1/tokens", token="admin-token")
    assert (told(refused), backend.tokens.minted) == ((400, Code.INVALID), {})
    path = "/v1/entities/node:n1/exec"
    refused = keyed(app, "k", {"words": ["true"]}, method="POST", path=path, token="admin-token")
    assert told(refused) == (400, Code.INVALID)


def test_a_narrower_token_of_the_same_name_is_not_told_the_answer_to_a_wider_one():
    _, app = cluster()
    texts = []
    for within in (None, "n1"):
        body = {"name": "bob", "scope": "write", "for_s": 60, "within": within}
        answer = ask(app, "POST", "/v1/tokens", token="admin-token", body=body)
        texts.append(answer.json["text"])
    assert [keyed(app, "k", token=text).status for text in texts] == [200, 422]
