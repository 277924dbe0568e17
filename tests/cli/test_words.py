"""Entities in words: what a terminal says of one."""

import pytest

from haptera.cli.output.words import details, outlook, sentence
from haptera.model.answers.views import Condition, DoingView, EntityView, ObservedView, ReadingView

OFF = ReadingView("power", "off", "labnode.look_power", 2_000)
UP = ReadingView("agent", "up", "sync.hear", 300)


def node(why: str, observed: dict[str, ObservedView]) -> EntityView:
    return EntityView(
        "node:n01", "node", "n01", "n01", 1, {}, {}, observed, Condition.STUCK, [], 42_000, why
    )


def test_readings_that_contradict_each_other_are_named_with_their_ages() -> None:
    why = "contested: sync.hear says agent up, labnode.look_power says power off"
    observed = {
        "agent": ObservedView("up", False, "read", "sync", 300, OFF),
        "power": ObservedView("off", True, "read", "labnode", 2_000, UP),
    }
    assert sentence(node(why, observed)) == (
        "node:n01 is stuck for 42 s: contested: sync.hear says agent up (0.3 s ago), "
        "labnode.look_power says power off (2.0 s ago)"
    )
    assert list(details(node(why, observed))) == [
        "knows  agent=up, remembered, read 0.3 s ago by sync, "
        "but labnode.look_power says power off (2.0 s ago)",
        "knows  power=off, read 2.0 s ago by labnode, but sync.hear says agent up (0.3 s ago)",
    ]


def test_two_modules_that_differ_are_both_named() -> None:
    observed = {
        "power": ObservedView(
            "off", True, "read", "pdu", 100, ReadingView("power", "on", "bmc.look", 900)
        )
    }
    assert sentence(node("contested: bmc.look says power on, pdu.look …", observed)) == (
        "node:n01 is stuck for 42 s: contested: bmc.look says power on (0.9 s ago), "
        "pdu says power off (0.1 s ago)"
    )


def test_what_was_seen_besides_is_said_where_the_reason_does_not() -> None:
    boots = ObservedView("offered", True, "read", "netboot", 900, note="has its loader")
    assert list(outlook(node("nothing heard from the agent for 1 min", {"netboot": boots}))) == [
        "noted  netboot: has its loader"
    ]
    failed = ObservedView("failed", True, "read", "service", 900, note="it ended with status 3")
    assert not [*outlook(node("service.start: it ended with status 3", {"run": failed}))]


def acting(since_ms: int, usual_ms: int | None) -> EntityView:
    doing = DoingView("labnode.switch_on", since_ms, usual_ms)
    why = "labnode.switch_on: runs"
    return EntityView(
        "node:n01", "node", "n01", "n01", 1, {}, {}, {}, Condition.ACTING, [], 30_000, why,
        doing=doing,
    )  # fmt: skip


def test_a_part_that_takes_much_longer_than_usual_is_said_to() -> None:
    assert sentence(acting(12_000, 3_000)) == (
        "node:n01 is acting for 30 s: labnode.switch_on: runs, for 12 s (usually 3.0 s)"
    )


def test_how_long_it_lasts_is_said_once() -> None:
    assert sentence(acting(30_000, 3_000)) == (
        "node:n01 is acting for 30 s: labnode.switch_on: runs (usually 3.0 s)"
    )


@pytest.mark.parametrize(("since_ms", "usual_ms"), [(6_500, 3_000), (900, 100), (12_000, None)])
def test_what_takes_as_long_as_it_may_is_told_in_detail_only(
    since_ms: int, usual_ms: int | None
) -> None:
    view = acting(since_ms, usual_ms)
    assert sentence(view) == "node:n01 is acting for 30 s: labnode.switch_on: runs"
    (line,) = details(view)
    assert line.startswith("doing  labnode.switch_on, for ")
    assert ("usually" in line) is (usual_ms is not None)
