"""`haptera health`: the bundled rules, and what a rule would have said of recorded samples."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from haptera.cli.main import OK, REFUSED, run
from haptera.health.bundled import BUNDLED
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId
from tests.api.serving import serving
from tests.cli.rig import point_at

BEGIN = 1_795_284_000
RAMP_BEGINS = BEGIN + 1_800


def ramp() -> Iterator[tuple[int, float]]:
    """An inlet that is well for half an hour, and then 0.2 °C warmer each minute."""
    for at in range(BEGIN, BEGIN + 7_200, 30):
        yield at, 25.0 + max(0, at - RAMP_BEGINS) * 0.2 / 60


def csv(path: Path) -> Path:
    rows = [f"{at},temp.inlet,{value:.2f},node:n1\n" for at, value in ramp()]
    path.write_text("at,series,value,entity\n" + "".join(rows))
    return path


def json_lines(path: Path) -> Path:
    rows = [
        {"at": at, "series": "temp.inlet", "value": value, "entity": "node:n1"}
        for at, value in ramp()
    ]
    path.write_text("".join(f"{json.dumps(row)}\n\n" for row in rows))
    return path


@pytest.mark.parametrize("written", [csv, json_lines])
def test_a_rule_says_of_recorded_samples_what_it_would_have_said(written, tmp_path, capsys) -> None:
    file = written(tmp_path / "samples")
    assert run(["health", "test", "inlet-trend", "--against", str(file), "-o", "json"]) == OK
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["entity"], told["series"], told["grade"]) == (
        "node:n1",
        "temp.inlet",
        "predicted",
    )
    meets_at = RAMP_BEGINS + 50 * 60
    assert told["at"] < meets_at - 600
    assert abs(told["expected_at"] - meets_at) < 300


def test_a_pipeline_of_ones_own_is_tried_and_its_end_is_told_too(tmp_path, capsys) -> None:
    file = tmp_path / "samples.csv"
    values = [20, 41, 41, 30, 30]
    rows = [f"{BEGIN + 10 * at},temp.cpu[0],{value}\n" for at, value in enumerate(values)]
    file.write_text("at,series,value\n" + "".join(rows))
    call = ["health", "test", "above 40 clear 35", "--sensors", "temp.*", "--against", str(file)]
    assert run(call) == OK
    _, hot, well = capsys.readouterr().out.splitlines()
    assert hot.split()[2:] == ["UTC", "degraded", "-", "temp.cpu[0]", "41"]
    assert well.split()[2:] == ["UTC", "ok", "-", "temp.cpu[0]"]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("inlet-trnd", ""),
        ("above", ""),
        ("2 of inlet-hot, inlet-trend", ""),
        ("inlet-hot", "7,temp.inlet,21\n"),
        ("inlet-hot", "at,series,value\n7,temp.inlet\n"),
        ("inlet-hot", "at,series,value\n7,temp.inlet,warm\n"),
        ("inlet-hot", '{"at": 7}\n'),
        ("inlet-hot", '{"at": 7, "series": "temp.inlet", "value": NaN}\n'),
        ("inlet-hot", "{" * 3_000),
        ("inlet-hot", "at,series,value\n" + "7" * 5_000),
    ],
)
def test_what_cannot_be_read_is_told(rule: str, text: str, tmp_path, capsys) -> None:
    file = tmp_path / "samples"
    file.write_text(text)
    assert run(["health", "test", rule, "--against", str(file)]) == REFUSED
    assert capsys.readouterr().err.startswith("error: ")


def test_bytes_that_are_no_text_and_files_that_are_not_there_are_told(tmp_path, capsys) -> None:
    file = tmp_path / "samples"
    file.write_bytes(b"at,series,value\n\xff,\xfe,\x00\n")
    for where in (file, tmp_path / "none", tmp_path):
        assert run(["health", "test", "inlet-hot", "--against", str(where)]) == REFUSED
        assert capsys.readouterr().err.startswith("error: ")


def test_all_bundled_rules_are_listed(capsys) -> None:
    assert run(["health", "rules", "-o", "name"]) == OK
    assert capsys.readouterr().out.split() == [one.name for one in BUNDLED]


@pytest.mark.net
def test_nodes_that_rules_speak_of_are_listed_with_what_is_done_about_them(
    monkeypatch, tmp_path, capsys
) -> None:
    n1 = EntityId("health", "n1", None)
    said = {"grade": "predicted", "care": "spared", "says": "inlet-trend", "expected": BEGIN}
    values = [SetDesired(n1, name, value, "site") for name, value in said.items()]
    with serving(Declare(n1, {}, "site"), *values) as one:
        point_at(one.url, "read-token", monkeypatch, tmp_path)
        assert run(["health"]) == OK
        _, row = capsys.readouterr().out.splitlines()
        assert row.split() == [
            *("n1", "predicted", "spared", "-"),
            *("2026-11-21", "18:00", "UTC", "inlet-trend"),
        ]
        assert run(["health", "-o", "name"]) == OK
        assert capsys.readouterr().out == "n1\n"
