"""Each call beside the API's own description of the endpoint that answers it."""

import re
from http import HTTPStatus

import msgspec
import pytest

from haptera.api.app import endpoints
from haptera.api.routes.stream import StreamRoute
from haptera.client import calls, node_calls, sample_calls
from haptera.model.news import News
from haptera.model.token_scope import Scope
from haptera.queue.duty import DutyMode, DutyState
from haptera.queue.job import JobState, Size
from haptera.rest.jobs import DutyBody, SubmitBody, SubmitSpec
from haptera.rest.schemas import CertificateBody, EntityPatch, SiteBody, SiteFile
from haptera.runtime.identity.pki import make_request, new_key
from haptera.site import Sites
from tests.api.fake_backend import FakeBackend

REQUEST = make_request(new_key()).decode()

SITE = SiteBody([SiteFile("site.yaml", "cluster: quick\n")], {"x": "1"})
# Each call with all that it takes.
CALLS = [
    calls.health(),
    calls.summary(),
    calls.parents(),
    calls.status("rack1n[1-4]"),
    calls.entities("rack1n[1-4]", kind="node"),
    calls.entity("node:n1"),
    calls.detail("node:n1"),
    calls.graph("node:n1"),
    calls.story("node:n1"),
    calls.inventory("debian-a"),
    calls.log("service:web@n1", after="1.9"),
    calls.desire("node:n1", {"power": "on"}, take=True, why="fans", if_match='"7.1"'),
    calls.describe("node:n1", {"rack": "1"}, take=True, why="moved", if_match='"7.1"'),
    calls.patch(
        [EntityPatch("node:n1", {"power": "on"})],
        all_or_nothing=True,
        dry_run=True,
        take=True,
        why="on",
    ),
    calls.retry("node:n1", why="new fans"),
    calls.apply(SITE, dry_run=True, take=True, why="first"),
    calls.diff(SITE),
    calls.export("site"),
    calls.execute("system:login@n1", ["ls", "-l"], stdin=b"\xff", within_s=60),
    calls.freezes(),
    calls.freeze("rack1*", "new fans", for_s=60),
    calls.thaw("rack1*", why="done"),
    calls.brake(),
    calls.release_brake(why="known"),
    calls.override("n1", why="hung"),
    calls.history("rack1*", limit=5, before=9),
    calls.happenings("rack1*", limit=5),
    calls.past(1_700_000_000, "rack1*"),
    calls.audit(limit=5),
    calls.revert(7, dry_run=True, why="wrong"),
    calls.submit(SubmitBody(SubmitSpec(("true",), Size(1, 512)), key="k")),
    calls.jobs(JobState.RUNNING, select="job:*", first=1, limit=5, since="a.1", wait_s=5),
    calls.job(7, wait_s=5),
    calls.cancel_job(7, why="wrong"),
    calls.cancel_jobs("job:[7-9]", why="wrong"),
    calls.prioritize(7, 5),
    calls.queue(),
    calls.relieve("n1", DutyBody(DutyMode.DRAIN, "new disk", 60)),
    calls.resume("n1"),
    calls.relieve_many("n*", DutyBody(DutyMode.HOLD, "fans"), state=DutyState.IDLE, who="eve"),
    calls.resume_many("n*", state=DutyState.DRAINED, who="eve"),
    calls.caller(),
    calls.tokens(),
    calls.certify(CertificateBody("eve", Scope.READ, 60, REQUEST)),
    calls.make_token("eve", Scope.READ, for_s=60, within="rack1*"),
    calls.revoke_token("6f1d"),
    calls.evict("n1", why="stolen"),
    calls.invite("n1", why="joins"),
    calls.unclaimed(),
    calls.claim("52:54:00:00:00:03", "n1", why="new"),
    calls.replica("standby", 7, 3, "0f"),
    calls.report(b"what changed"),
    calls.events("rack1*", types=[News.GONE, News.DESIRED], kinds=["node"]),
    sample_calls.samples("rack1*", series="temp.inlet"),
    sample_calls.series("node:n1", "disk.used[/]", last_s=7_200, step_s=60),
]


def served():
    """Each endpoint that gives or takes JSON, or streams, by its method and path."""
    backend = FakeBackend()
    every = endpoints(backend, StreamRoute(backend, "quick"), Sites("quick"), "quick")
    media = ("application/json", "application/x-ndjson", "text/event-stream")
    return {(one.method, one.path): one for one in every if one.contract.media_type in media}


def answering(call):
    """The endpoint that answers a call."""
    found = [
        one
        for (method, path), one in served().items()
        if method == call.method and re.fullmatch(re.sub(r"{\w+}", "[^/]+", path), call.path)
    ]
    assert len(found) == 1, f"{call.method} {call.path} is answered by {len(found)} endpoints"
    return found[0]


def test_whatever_the_api_answers_there_is_a_call_for():
    said = {(one.method, one.path) for one in map(answering, CALLS)}
    assert said == served().keys(), "say the call in haptera/client/calls.py, and add it above"


def test_all_calls_are_held_beside_the_api():
    every = [one for file in (calls, sample_calls) for one in vars(file).values()]
    assert len(CALLS) == len([one for one in every if callable(one) and is_call(one)])


def is_call(one):
    files = (calls.__name__, node_calls.__name__, sample_calls.__name__)
    return getattr(one, "__module__", None) in files and not one.__name__.startswith("_")


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.method} {call.path}")
def test_a_call_sends_and_expects_what_its_endpoint_takes_and_gives(call):
    contract = answering(call).contract
    assert set(call.query) <= {one.name for one in contract.queries}
    assert {one.name for one in contract.queries if one.required} <= set(call.query)
    assert set(call.headers) <= set(contract.headers)
    assert (call.body is None) == (contract.takes is None)
    if contract.takes is not None:
        msgspec.json.decode(msgspec.json.encode(call.body), type=contract.takes)
    if contract.gives is not None:
        # A view may be asked for without what was not asked for with it.
        assert issubclass(contract.gives, call.gives)
        assert contract.status in (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED)


def test_only_what_changes_nothing_is_repeatable():
    assert {one.method for one in CALLS if one.repeatable} == {"GET"}


def test_a_name_cannot_leave_its_place_in_the_path():
    assert calls.entity("node:n1/../../tokens?x#y").target == (
        "/v1/entities/node:n1%2F..%2F..%2Ftokens%3Fx%23y"
    )
