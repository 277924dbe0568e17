"""Entities in words: what a terminal says of one."""

from haptera.cli.words import details, sentence
from haptera.model.views import Condition, EntityView, ObservedView, ReadingView

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
        "knows  agent=up, remembered 0.3 s ago by sync, "
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
