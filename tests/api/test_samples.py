"""Numbers that machines report, over REST: the last ones, series, and all for Prometheus."""

import asyncio
import json

import pytest

from haptera.model.changes import Declare
from haptera.model.entity import node_id
from haptera.model.errors import Code
from haptera.model.samples import Point
from haptera.model.token_scope import Scope
from haptera.rest.samples import POINTS_MAX
from haptera.runtime.identity.tokens import Bearer
from tests.api.asking import app_of, ask
from tests.api.fake_backend import FakeBackend

N1, N2 = node_id("n1"), node_id("n2")
OF_N1 = "/v1/entities/node:n1/samples"


@pytest.fixture
def backend():
    one = FakeBackend()
    one.write(Declare(N1, {"rack": "r1"}, "site"), Declare(N2, {"rack": "r2"}, "site"))
    one.samples.now = {N1: {"temp.inlet": 21.5, "disk.used[/]": 3e9}, N2: {"temp.inlet": 35.25}}
    return one


def got(backend, path, token="read-token"):
    return ask(app_of(backend), "GET", path, token=token)


def test_the_last_numbers_of_all_are_told_with_their_units(backend):
    n1, n2 = got(backend, "/v1/samples").json["entities"]

    assert (n1["entity"], sorted(n1["series"])) == ("node:n1", ["disk.used[/]", "temp.inlet"])
    inlet = n2["series"]["temp.inlet"]
    assert (inlet["value"], inlet["unit"], 0 <= inlet["age_ms"] < 60_000) == (35.25, "°C", True)


def test_those_of_a_selector_and_of_one_series_are_told_alone(backend):
    told = got(backend, "/v1/samples?select=rack=r1&series=temp.inlet").json["entities"]

    assert [(one["entity"], [*one["series"]]) for one in told] == [("node:n1", ["temp.inlet"])]


def test_those_with_the_highest_or_lowest_numbers_come_in_order(backend):
    backend.write(*(Declare(node_id(f"n{number}"), {}, "site") for number in range(3, 7)))
    backend.samples.now |= {node_id(f"n{number}"): {"temp.inlet": 20.0} for number in range(3, 7)}

    def ranked(query):
        told = got(backend, f"/v1/samples?series=temp.inlet&{query}").json["entities"]
        return [(one["entity"], one["series"]["temp.inlet"]["value"]) for one in told]

    assert ranked("highest=3") == [("node:n2", 35.25), ("node:n1", 21.5), ("node:n3", 20.0)]
    assert ranked("lowest=2") == [("node:n3", 20.0), ("node:n4", 20.0)]
    assert ranked("highest=9&select=rack=r1") == [("node:n1", 21.5)]
    assert got(backend, "/v1/samples?series=temp.outlet&highest=3").json["entities"] == []


def test_a_series_is_told_from_when_one_asks_for(backend):
    backend.samples.told = [Point(60.0, 1.0, 2.0, 3.0, 4)]
    told = got(backend, f"{OF_N1}?series=temp.inlet&last_s=7200&step_s=60&until=9000").json

    assert told == {
        "entity": "node:n1",
        "series": "temp.inlet",
        "unit": "°C",
        "since_s": 1800.0,
        "until_s": 9000.0,
        "step_s": 60,
        "points": [{"at": 60.0, "low": 1.0, "mean": 2.0, "high": 3.0, "count": 4}],
    }
    assert backend.samples.asked == [(N1, "temp.inlet", 7200, 60)]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/entities/node:n9/samples?series=temp.inlet", 404, Code.NOT_FOUND),
        ("/v1/samples?highest=3", 400, Code.SYNTAX),
        ("/v1/samples?series=temp.inlet&highest=3&lowest=3", 400, Code.SYNTAX),
        ("/v1/samples?series=temp.inlet&highest=0", 400, None),
        (f"{OF_N1}?series=temp.outlet", 400, Code.UNKNOWN_NAME),
        (f"{OF_N1}?series=a%20b", 400, Code.SYNTAX),
        (f"{OF_N1}?series={'a' * 600}", 400, Code.SYNTAX),
        (OF_N1, 400, Code.MISSING),
        (f"{OF_N1}?series=temp.inlet&last_s=0", 400, None),
        (f"{OF_N1}?series=temp.inlet&last_s=999999999", 400, None),
        (f"{OF_N1}?series=temp.inlet&step_s=-1", 400, None),
        (f"{OF_N1}?series=temp.inlet&step_s=nan", 400, None),
        (f"{OF_N1}?series=temp.inlet&until=0", 400, None),
        ("/v1/samples?series=a%20b", 400, Code.SYNTAX),
    ],
)
def test_what_cannot_be_asked_is_refused(backend, path, status, code):
    told = got(backend, path)

    assert told.status == status
    assert code is None or told.json["code"] == code


def test_more_points_than_an_answer_holds_are_refused_with_the_step_that_fits(backend):
    backend.samples.told = [Point(float(at), 1.0, 1.0, 1.0, 1) for at in range(POINTS_MAX + 1)]
    told = got(backend, f"{OF_N1}?series=temp.inlet&last_s=20000")

    assert told.status == 400
    assert told.json["do"] == "ask for one of each step: step_s=3"


def test_prometheus_reads_the_last_number_of_each_series(backend):
    told = got(backend, "/metrics/readings")

    assert told.headers["content-type"].startswith("text/plain")
    assert told.body.decode().splitlines() == [
        "# HELP haptera_reading The last number of a series, not older than two minutes.",
        "# TYPE haptera_reading gauge",
        'haptera_reading{entity="node:n1",node="n1",series="temp.inlet"} 21.5',
        'haptera_reading{entity="node:n1",node="n1",series="disk.used[/]"} 3000000000.0',
        'haptera_reading{entity="node:n2",node="n2",series="temp.inlet"} 35.25',
    ]


def test_a_long_list_is_told_as_lines_too(backend):
    app = app_of(backend)
    headers = {"accept": "application/x-ndjson"}
    told = ask(app, "GET", "/v1/samples", token="read-token", headers=headers)

    lines = [json.loads(line)["entity"] for line in told.body.splitlines()]
    assert lines == ["node:n1", "node:n2"]
    assert told.pieces > 1


def test_a_limited_token_is_told_of_its_own_entities_alone(backend):
    bearer = Bearer("eve", Scope.READ, "node:n2")
    token = asyncio.run(backend.tokens.mint(bearer, 60)).text
    told = got(backend, "/v1/samples", token)

    assert [one["entity"] for one in told.json["entities"]] == ["node:n2"]
    assert got(backend, f"{OF_N1}?series=temp.inlet", token).status == 403
    assert got(backend, "/metrics/readings", token).status == 403
