"""`haptera module test`: recorded answers, played to what a site declares."""

from pathlib import Path

import pytest

from haptera.cli.main import run
from haptera.kinds import KINDS

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/platform"


@pytest.fixture(autouse=True)
def _no_kinds_left():
    yield
    KINDS.declare({})


def played(text, tmp_path):
    recorded = tmp_path / "recorded.yaml"
    recorded.write_text(text, "utf-8")
    return run(["module", "test", str(EXAMPLE / "site.yaml"), str(recorded)])


def test_the_recorded_answers_of_the_example_are_understood(tmp_path, capsys):
    assert played((EXAMPLE / "recorded.yaml").read_text("utf-8"), tmp_path) == 0
    assert capsys.readouterr().out.count("ok ") == 5


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("finds: halted\n", "it finds 'serving', not 'halted'"),
        ("fails: on fire\n", "it should fail with 'on fire': it does not fail"),
        ("sends: {a: 1}\n", "it sends [], not {'a': 1}"),
    ],
)
def test_what_is_otherwise_than_recorded_is_told(case, says, tmp_path, capsys):
    asked = "GET /v1/appliances: {body: {items: [{id: a1, state: SERVING}]}}"
    text = f"- look: look_run\n  entity: appliance:a1\n  answers:\n    {asked}\n  {case}"

    assert played(text, tmp_path) == 1
    assert says in capsys.readouterr().out


def test_what_was_not_recorded_is_not_asked_of_anybody(tmp_path, capsys):
    text = "- step: boot\n  entity: appliance:a1\n"

    assert played(text, tmp_path) == 1
    assert "no answer is recorded to POST /v1/appliances/a1/boot" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["- look: look_all\n  entity: appliance:a1\n", "- looks: x\n", "x: y\n", "- [\n"]
)
def test_what_is_no_case_is_an_error(text, tmp_path, capsys):
    assert played(text, tmp_path) != 0
    assert "error: " in capsys.readouterr().err
