"""A plan in words: what waits is named."""

import msgspec
import pytest

from haptera.cli.output.plans import group_lines, print_plan
from haptera.model.changes import SetDesired
from haptera.rest.schemas import AppliedView
from tests.core.test_preview import LAB, frozen, lab_node, previewed

OFF = SetDesired(LAB, "power", "off", "site")


def test_what_waits_for_a_thaw_or_the_brake_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    table = lab_node(power="on", agent="up", busy="free")
    frozen(table, "n1", until_s=1_795_284_000)
    plan = previewed(table, OFF, brake="12 of 40 nodes fell silent within 30 s")
    print_plan(AppliedView(3, [], plan, wide=False))
    assert capsys.readouterr().out.splitlines()[-5:-1] == [
        "  1 wait until thawed: frozen by user:eve until 2026-11-21 18:00 UTC: board swap",
        "",
        "the brake is on, and nothing DISRUPTIVE begins: 12 of 40 nodes fell silent within 30 s",
        "disrupts up to 1 of 1 nodes: n1",
    ]


def test_in_how_many_rounds_the_budgets_let_it_be_done_is_told() -> None:
    (group,) = previewed(lab_node(power="on", agent="up", busy="free"), OFF).groups
    costs = "costs 1; duration unknown: labnode.switch_off not yet measured"
    for rounds, at_least_ms, told in [
        (1, 0, ""),
        (4, 0, "; in 4 rounds by the budgets"),
        (4, 16_000, "; in 4 rounds by the budgets, 16 s at least"),
        (None, 0, "; the budgets allow none at once"),
    ]:
        one = msgspec.structs.replace(group, rounds=rounds, at_least_ms=at_least_ms)
        assert f"{costs}{told}" in list(group_lines(one))
