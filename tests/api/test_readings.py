"""Readings that programs outside haptera report: who may, of what, and what is shown of them."""

import asyncio
import json
import re

import pytest

from haptera.model.changes import Declare
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import Code
from haptera.model.facts import REPORTED_MS_MAX
from haptera.rest.readings import READINGS_MAX
from haptera.runtime.identity.tokens import Bearer, Scope
from tests.api.asking import app_of, ask, asked
from tests.api.fake_backend import FakeBackend
from tests.api.real_backend import comes, real_backend

N1, N2, WEB = node_id("n1"), node_id("n2"), EntityId("service", "web", "n1")
DECLARED = [Declare(one, {}, "site") for one in (N1, N2, WEB)]
MONITOR, LIMITED = Bearer("mon", Scope.REPORT), Bearer("one", Scope.REPORT, "n1")


def reading(**more):
    return {"entity": "node:n1", "variable": "busy", "value": "busy", "age_ms": 1_000} | more


def body(*readings):
    return {"source": "rack-monitor", "readings": [*readings]}


def answered(folder, *told, bearer=MONITOR, then=None):
    """The answers of a real engine to these bodies in turn, and the result of `then`."""

    async def run():
        async with real_backend(folder, *DECLARED) as backend:
            app = app_of(backend)
            text = (await backend.tokens.mint(bearer, 60.0)).text
            answers = [
                await asked(
                    app,
                    "POST",
                    "/v1/readings",
                    text,
                    json.dumps(one).encode(),
                    {"host": "127.0.0.1:4270"},
                )
                for one in told
            ]
            return answers, None if then is None else await then(backend)

    return asyncio.run(run())


def test_what_is_reported_is_shown_with_its_source_and_age_and_is_in_the_audit(tmp_path):
    async def shown(backend):
        await comes(
            lambda: "busy" in backend.queries.entity(N1).observed,
            lambda: backend.queries.entity(N1),
        )
        return backend.queries.entity(N1).observed["busy"], backend.records.deeds(None, 9)

    note = reading(note="seen by a probe")
    (answer,), (busy, deeds) = answered(tmp_path, body(note), then=shown)
    assert (answer.status, answer.json) == (202, {"taken": 1})
    assert (busy.value, busy.known, busy.method, busy.by) == (
        "busy",
        True,
        "reported",
        "report:rack-monitor",
    )
    assert (busy.age_ms >= 1_000, busy.note) == (True, "seen by a probe")
    (deed,) = [one for one in deeds if one.what.startswith("report:")]
    assert (deed.who, deed.what) == ("user:mon", "report:rack-monitor: node:n1 busy busy")


def test_who_reports_without_end_pushes_nothing_out_of_the_audit(tmp_path):
    """A line stands for a day of one token's reports of an entity, or of several at once."""

    async def lines(backend):
        return [one.what for one in backend.records.deeds(None, 99) if one.who == "user:mon"]

    several = body(reading(), reading(entity="node:n2"))
    other = body(reading(entity="node:n2"))
    sources = [body(reading(value=("busy", "free")[n % 2])) | {"source": f"s{n}"} for n in range(9)]
    answers, told = answered(tmp_path, *sources, several, other, several, then=lines)
    assert [one.status for one in answers] == [202] * 12
    assert sorted(told) == [
        "report:rack-monitor: node:n1 busy busy, node:n2 busy busy",
        "report:rack-monitor: node:n2 busy busy",
        "report:s0: node:n1 busy busy",
    ]


WRONG = {
    "an entity that is not there": (reading(entity="node:n9"), 404, Code.NOT_FOUND),
    "a kind that there is not": (reading(entity="nod:n1"), 404, Code.NOT_FOUND),
    "a module": (
        reading(entity="module:jobs@n1", variable="run", value="failed"),
        404,
        Code.NOT_FOUND,
    ),
    "no variable": (reading(variable="bsy"), 400, Code.UNKNOWN_NAME),
    "what is desired": (reading(entity="service:web@n1", variable="command"), 400, Code.INVALID),
    "a value of another": (reading(value="up"), 400, Code.INVALID),
    "no text": (reading(value=1), 400, Code.SYNTAX),
    "what haptera hears itself": (reading(variable="agent", value="up"), 400, Code.INVALID),
    "of the future": (reading(age_ms=-1), 400, Code.SYNTAX),
    "too old": (reading(age_ms=REPORTED_MS_MAX + 1), 400, Code.SYNTAX),
    "two lines": (reading(note="a\nb"), 400, Code.SYNTAX),
    "another field": (reading(at=5), 400, Code.SYNTAX),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_one_reading_that_cannot_be_has_all_refused_and_says_which(tmp_path, wrong):
    bad, status, code = WRONG[wrong]

    async def shown(backend):
        return backend.queries.entity(N1).observed, [
            one.who for one in backend.records.deeds(None, 9)
        ]

    (answer,), (observed, who) = answered(tmp_path, body(reading(), bad), then=shown)
    assert (answer.status, answer.json["code"]) == (status, code), answer.json
    assert re.search(r"readings\[1\]", answer.json["what"] + (answer.json["where"] or ""))
    assert (observed, "user:mon" in who) == ({}, False)


def test_a_request_has_a_bound_and_a_source(tmp_path):
    told = [
        body(*[reading()] * (READINGS_MAX + 1)),
        body(),
        {"source": "", "readings": [reading()]},
        body(*[reading()] * READINGS_MAX),
    ]
    answers, _ = answered(tmp_path, *told)
    assert [one.status for one in answers] == [400, 400, 400, 202]
    assert answers[-1].json == {"taken": READINGS_MAX}


def test_a_limited_token_reports_of_what_it_is_limited_to_alone(tmp_path):
    told = [body(reading()), body(reading(), reading(entity="node:n2"))]
    answers, _ = answered(tmp_path, *told, bearer=LIMITED)
    assert [one.status for one in answers] == [202, 403]
    assert answers[1].json["code"] == Code.OUTSIDE_LIMIT


def test_who_may_report_may_nothing_else_and_who_may_write_reports_nothing():
    """All routes are walked with each token in test_api.py; these two are tested by name."""
    backend = FakeBackend()
    backend.write(*DECLARED)
    app = app_of(backend)
    told = {
        token: ask(app, "POST", "/v1/readings", token=f"{token}-token", body=body(reading())).status
        for token in ("read", "write", "exec", "admin", "report")
    }
    assert told == {"read": 403, "write": 403, "exec": 403, "admin": 202, "report": 202}
    assert ask(app, "GET", "/v1/entities", token="report-token").status == 403
    assert ask(app, "PATCH", "/v1/entities/node:n1/desired", token="report-token").status == 403


def test_a_scope_includes_what_is_said_of_it_and_no_more():
    told = {one: "".join(f" {each}" for each in Scope if one.includes(each)) for one in Scope}
    assert told == {
        "read": " read",
        "write": " read write",
        "exec": " read write exec",
        "admin": " read write exec admin report",
        "report": " report",
    }
