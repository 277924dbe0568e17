"""Plans over HTTP: told with each write, named by their digest, and needed where much is hit."""

import pytest

from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from haptera.model.errors import Code
from haptera.runtime.store.optimistic_write import refused
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend

NODES = [f"n{number}" for number in range(1, 21)]
SITE = """\
cluster: quick
nodes: {"n[1-20]": {}}
desired: {"n[1-20]": {power: off}}
"""
BODY = {"files": [{"name": "site.yaml", "text": SITE}]}
APPLY, REVERT = "/v1/apply", "/v1/revert/40"


@pytest.fixture
def quick():
    backend = FakeBackend()
    backend.write(*(Declare(node_id(one), {}, "site") for one in NODES))
    backend.write(*(SetDesired(node_id(one), "power", "on", "site") for one in NODES))
    backend.disrupts = NODES[:3]
    return backend, app_of(backend)


def write(app, path, query="", token="write-token"):
    return ask(app, "POST", f"{path}{query}", token=token, body=BODY if path == APPLY else b"")


def planned(app, path):
    return write(app, path, "?dry_run=1", "read-token").json


@pytest.mark.parametrize("path", [APPLY, REVERT])
def test_what_disrupts_many_needs_the_digest_of_its_plan(quick, path):
    backend, app = quick
    refused = write(app, path)
    assert (refused.status, backend.revision()) == (428, 40)
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json["code"] == Code.PLAN_REQUIRED
    assert refused.json["what"] == "this disrupts up to 3 of 20 nodes, more than 10 %: n[1-3]"
    assert "--digest HEX, or digest=HEX" in refused.json["do"]

    plan = planned(app, path)
    assert (plan["wide"], plan["plan"]["disrupted"]) == (True, "n[1-3]")
    done = write(app, path, f"?digest={plan['plan']['digest']}")
    assert done.status == 200
    assert backend.revision() > 40
    assert done.json["plan"] == plan["plan"]


@pytest.mark.parametrize("path", [APPLY, REVERT])
def test_a_digest_of_another_plan_is_refused_and_nothing_is_written(quick, path):
    backend, app = quick
    backend.disrupts = []
    before = planned(app, path)["plan"]["digest"]
    backend.say(node_id("n1"), condition="stuck", why="a screw is loose")
    after = planned(app, path)["plan"]["digest"]

    refused = write(app, path, f"?digest={before}")
    assert (refused.status, backend.revision()) == (412, 40)
    assert refused.json["code"] == Code.PLAN_CHANGED
    assert f"it is {after} now" in refused.json["what"]
    assert write(app, path, f"?digest={after}").status == 200


@pytest.mark.parametrize(
    ("disrupted", "percent", "asks"),
    [(0, 10, False), (2, 10, False), (3, 10, True), (3, 15, False), (20, 100, False),
     (1, 0, False), (2, 0, True)],
)  # fmt: skip
def test_the_radius_is_a_setting_and_a_single_node_is_nobodys_business(
    quick, disrupted, percent, asks
):
    backend, app = quick
    backend.disrupts, backend.radius_percent = NODES[:disrupted], percent
    assert planned(app, APPLY)["wide"] is asks
    assert write(app, APPLY).status == (428 if asks else 200)


@pytest.mark.parametrize("digest", ["", "0", "xyz", "0" * 13, "A" * 12])
def test_what_is_no_digest_is_refused(quick, digest):
    backend, app = quick
    refused = write(app, APPLY, f"?digest={digest}")
    assert (refused.status, backend.revision()) == (400, 40)
    assert refused.json["where"] == "digest in the query"


def test_a_plan_that_is_made_anew_for_what_changed_meanwhile_is_checked_anew(quick):
    backend, app = quick
    digest = planned(app, APPLY)["plan"]["digest"]

    def other():
        backend.disrupts = NODES
        backend.write(SetDesired(node_id("n1"), "power", "off", "site"))

    backend.meanwhile = other
    refused = write(app, APPLY, f"?digest={digest}")
    assert (refused.status, backend.revision()) == (412, 41)


def bulk(app, query="", *, whole=False, names=NODES):
    patches = [{"entity": f"node:{one}", "desired": {"power": "off"}} for one in names]
    body = {"patches": patches, "all_or_nothing": whole}
    return ask(app, "POST", f"/v1/bulk?take=1{query}", token="write-token", body=body)


def test_patches_of_many_need_the_digest_of_their_plan_too(quick):
    backend, app = quick
    refused = bulk(app)
    assert (refused.status, backend.revision()) == (207, 40)
    assert {one["status"] for one in refused.json["results"]} == {428}
    assert bulk(app, whole=True).status == 428
    assert backend.revision() == 40

    (plan,) = bulk(app, "&dry_run=1").json["plans"]
    assert bulk(app, f"&digest={'0' * 12}", whole=True).status == 412
    done = bulk(app, f"&digest={plan['digest']}")
    assert (done.status, backend.revision()) == (200, 60)
    assert done.json["plans"] == [plan]


def test_what_cannot_be_patched_takes_nothing_off_the_others_plan(quick):
    backend, app = quick
    mixed = bulk(app, names=[*NODES, "n99"])
    assert (mixed.status, backend.revision()) == (207, 40)
    assert {one["status"] for one in mixed.json["results"]} == {428, 404}


class Whole(FakeBackend):
    """It refuses n20, and whatever comes with it; power that is cut disrupts."""

    async def preview(self, changes):
        nodes = [one.entity.node for one in changes]
        if "n20" in nodes:
            raise refused("n20 is not to be touched")
        self.disrupts = nodes
        return await super().preview(changes)


def test_patches_that_are_tried_in_halves_disrupt_no_more_than_all_of_them():
    backend = Whole()
    backend.write(*(Declare(node_id(one), {}, "site") for one in NODES))
    app = app_of(backend)
    mixed = bulk(app, names=NODES[-4:])
    assert [one["status"] for one in mixed.json["results"]] == [200, 200, 428, 409]
    assert "1 of 20 nodes besides 2 by" in mixed.json["results"][2]["problem"]["what"]
