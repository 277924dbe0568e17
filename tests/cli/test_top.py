"""`haptera top`: the worst nodes first, by health or by a number."""

import json

import pytest

from haptera.cli.main import OK
from haptera.kinds import health
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from tests.api.serving import serving
from tests.cli.test_commands import point_at, typed

pytestmark = pytest.mark.net

GRADES = {"n2": "predicted", "n4": "failed", "n5": "degraded"}


@pytest.fixture
def cluster(monkeypatch, tmp_path):
    """Six nodes of two racks; rules speak of three, and of five a temperature is known."""
    changes = [Declare(node_id(f"n{one}"), {"rack": f"r{one % 2}"}, "site") for one in range(1, 7)]
    for name, grade in GRADES.items():
        entity = EntityId(health.kind.name, name, None)
        changes += [
            Declare(entity, {}, "site"),
            SetDesired(entity, health.grade.name, grade, "site"),
        ]
    with serving(*changes) as one:
        one.backend.samples.now = {
            node_id(f"n{number}"): {"temp.inlet": 20.0 + number, "fan.speed[fan1]": 900.0}
            for number in range(1, 6)
        }
        point_at(one.url, "read-token", monkeypatch, tmp_path)
        yield one


def shown(capsys, *words: str) -> list[list[str]]:
    code, out, errors = typed(capsys, "top", *words)
    assert (code, errors) == (OK, "")
    return [line.split() for line in out.splitlines()]


def test_the_worst_health_comes_first_and_healthy_nodes_are_left_out(cluster, capsys) -> None:
    assert shown(capsys) == [
        ["NODE", "HEALTH", "TEMP.INLET"],
        ["n4", "failed", "24", "°C"],
        ["n2", "predicted", "22", "°C"],
        ["n5", "degraded", "25", "°C"],
    ]
    assert [row[0] for row in shown(capsys, "-n", "1")] == ["NODE", "n4"]
    assert [row[0] for row in shown(capsys, "rack=r1")] == ["NODE", "n5"]


def test_by_a_number_the_highest_or_lowest_come_first_with_the_numbers_asked_for(
    cluster, capsys
) -> None:
    rows = shown(capsys, "--by", "temp.inlet", "-n", "2", "--show", "fan.speed[fan1]")
    assert rows == [
        ["NODE", "HEALTH", "TEMP.INLET", "FAN.SPEED[FAN1]"],
        ["n5", "degraded", "25", "°C", "900"],
        ["n4", "failed", "24", "°C", "900"],
    ]
    rows = shown(capsys, "--by", "temp.inlet", "--lowest", "-n", "2")
    assert [row[:2] for row in rows[1:]] == [["n1", "-"], ["n2", "predicted"]]
    answer = json.loads(typed(capsys, "top", "--by", "temp.inlet", "-n", "1", "-o", "json")[1])
    assert [one["entity"] for one in answer] == ["node:n5"]


def test_where_there_is_nothing_to_show_it_says_what_to_type(cluster, capsys) -> None:
    code, out, errors = typed(capsys, "top", "node:n1")
    assert (code, out) == (OK, "")
    assert "order by a number with --by SERIES" in errors
    code, out, errors = typed(capsys, "top", "--by", "power.watts")
    assert (code, out) == (OK, "")
    assert errors == "no power.watts was measured of any of them in the last two minutes\n"
    code, _, errors = typed(capsys, "top", "(")
    assert (code, "'('" in errors) == (1, True)
    assert typed(capsys, "top", "--lowest")[0] == 2
    code, _, errors = typed(capsys, "top", "--by", "temp inlet")
    assert (code, "is no series" in errors) == (1, True)
