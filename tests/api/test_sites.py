"""Site files over HTTP: whose values they change, how they differ, what is in force as one."""

import asyncio
import json

from haptera.api.app import make_app
from haptera.api.requests.turns import REQUESTS_MAX
from haptera.model.changes import Declare, Desired, SetDesired
from haptera.model.entity import node_id
from haptera.model.parts import Context
from haptera.runtime.processes.controllers import ControllerPlace
from haptera.runtime.processes.places import ModulePlace
from haptera.site import Sites
from haptera.site.apply.proposal import answer
from tests.api.asking import app_of, ask, asked
from tests.api.fake_backend import FakeBackend

N1 = node_id("n1")
SITE = "cluster: quick\nnodes: {n1: {rack: r1}}\ndesired: {n1: {power: on, agent: up}}\n"


def quick():
    backend = FakeBackend()
    backend.write(
        Declare(N1, {}, "site"),
        SetDesired(N1, "power", "off", "user:eve"),
        SetDesired(N1, "busy", "free", "site"),
    )
    return backend, app_of(backend)


def body(text=SITE):
    return {"files": [{"name": "site.yaml", "text": text}]}


def test_what_differs_is_told_value_by_value_with_its_owner():
    backend, app = quick()
    answer = ask(app, "POST", "/v1/diff", token="read-token", body=body())

    assert (answer.status, backend.revision()) == (200, 3)
    assert answer.json == {
        "revision": 3,
        "differences": [
            {"entity": "node:n1", "name": "rack", "before": None, "after": "r1"},
            {"entity": "node:n1", "name": "agent", "before": None, "after": "up"},
            {"entity": "node:n1", "name": "power", "before": "off", "after": "on",
             "owner": "user:eve"},
            {"entity": "node:n1", "name": "busy", "before": "free", "after": None},
        ],
    }  # fmt: skip


def test_what_belongs_to_others_is_refused_naming_them_unless_it_is_taken():
    backend, app = quick()
    refused = ask(app, "POST", "/v1/apply", token="write-token", body=body())
    assert (refused.status, backend.revision()) == (409, 3)
    assert refused.json["what"] == "power of node:n1 belongs to user:eve, who wants off"
    assert "--take" in refused.json["do"]

    taken = ask(app, "POST", "/v1/apply?take=1", token="write-token", body=body())
    assert taken.status == 200
    assert backend.store[N1].desired == {
        "power": Desired("on", "site"),
        "agent": Desired("up", "site"),
    }
    again = ask(app, "POST", "/v1/diff", token="read-token", body=body())
    assert again.json["differences"] == []


def test_one_value_is_taken_and_given_up_in_ones_own_name():
    backend, app = quick()
    path = "/v1/entities/node:n1/desired"
    refused = ask(app, "PATCH", path, token="write-token", body={"power": "on"})
    assert (refused.status, backend.revision()) == (409, 3)
    assert refused.json["what"] == "power of node:n1 belongs to user:eve, who wants off"
    assert refused.json["do"] == "have user:eve release it, or take it (--take, take=1)"

    taken = ask(app, "PATCH", f"{path}?take=1", token="write-token", body={"power": "off"})
    assert taken.status == 200
    assert backend.store[N1].desired["power"] == Desired("off", "user:bob")
    ask(app, "PATCH", f"{path}?take=1", token="write-token", body={"power": None, "busy": None})
    assert backend.store[N1].desired == {}


def test_what_is_in_force_is_a_site_file_that_applies_to_nothing():
    _, app = quick()
    answer = ask(app, "GET", "/v1/export", token="read-token")
    text = answer.json["text"]

    assert answer.json["revision"] == 3
    assert "n1: {busy: free, power: off}  # power by user:eve\n" in text
    assert ask(app, "POST", "/v1/diff", token="read-token", body=body(text)).json == {
        "revision": 3,
        "differences": [],
    }
    mine = ask(app, "GET", "/v1/export?owner=site", token="read-token").json["text"]
    assert "n1: {busy: free}\n" in mine


CODE = """\
cluster: quick
modules: {fans: {exec: [run, fans], context: parent}, lamp: {place: "lamp:module", context: self}}
controllers: {care: {place: "care:controller"}}
"""


def test_code_that_the_parent_does_not_run_is_brought_by_an_admin_only():
    _, app = quick()
    refused = ask(app, "POST", "/v1/apply", token="write-token", body=body(CODE))
    assert (refused.status, refused.json["what"]) == (
        403,
        "the code of care, fans, lamp is not what this parent runs",
    )
    for token, query in (("admin-token", ""), ("write-token", "?dry_run=1")):
        path = f"/v1/apply{query}"
        assert ask(app, "POST", path, token=token, body=body(CODE)).status != 403


def test_code_that_it_runs_is_applied_by_anybody_and_any_other_word_of_it_is_not():
    own = (
        ModulePlace("fans", Context.PARENT, "/srv", command=("run", "fans")),
        ModulePlace("lamp", Context.SELF, "/srv", place="lamp:module"),
    )
    care = (ControllerPlace("care", "care:controller", "/srv", {}),)
    sites = Sites("quick", controllers=care, own=own)
    app = make_app(FakeBackend(), sites, cluster="quick")

    def status(text):
        return ask(app, "POST", "/v1/apply", token="write-token", body=body(text)).status

    assert status(CODE) != 403
    for word, other in (
        ("[run, fans]", "[run, tanks]"),
        ("lamp:module", "lamp:other"),
        ("care:controller", "care:other"),
        ("context: parent", "context: self"),
    ):
        assert (word in CODE, status(CODE.replace(word, other))) == (True, 403)


def test_what_the_parent_would_have_to_start_with_is_told():
    sites = Sites("quick", modules=("jobs", "service"))
    app = make_app(FakeBackend(), sites, cluster="quick")
    text = f"{SITE}modules: [jobs, slurm, image]\ncontrollers: {{roll: {{}}}}\n"

    for path in ("/v1/apply?dry_run=1", "/v1/apply"):
        answer = ask(app, "POST", path, token="admin-token", body=body(text))
        assert (answer.status, answer.json["not_started"]) == (200, ["image", "roll", "slurm"])


def test_of_one_name_one_site_is_read_at_a_time_and_few_wait():
    reading, all_at_once = [], []

    async def slow(question):
        reading.append(question)
        all_at_once.append(len(reading))
        for _ in range(50):
            await asyncio.sleep(0)
        reading.remove(question)
        return answer(question)

    async def story():
        app = make_app(FakeBackend(), Sites("quick", work=slow), cluster="quick")
        sent = json.dumps(body("cluster: quick\n")).encode()

        def diff(token):
            return asked(app, "POST", "/v1/diff", token, sent, {"host": "127.0.0.1:4270"})

        tokens = ["read-token"] * (REQUESTS_MAX + 2) + ["write-token"]
        return [one.status for one in await asyncio.gather(*map(diff, tokens))]

    assert sorted(asyncio.run(story())) == [200] * (REQUESTS_MAX + 1) + [429, 429]
    # Somebody else's is read beside it.
    assert max(all_at_once) == 2
