"""A search for what breaks a condition: found on a planted mistake, made small, and replayed."""

from dataclasses import replace

import pytest

from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.rehearsal.faults import parse_fault
from haptera.rehearsal.finding import find
from haptera.rehearsal.invariants import parse_invariant
from haptera.rehearsal.present import Present
from haptera.rehearsal.rehearse import Rehearsal, rehearse
from tests.rehearsal.test_rehearse import commands, stored, the_present

REPLICAS = ("n1", "n2", "n3")


def three(**budget: int) -> Present:
    """Three nodes with a service each, and a budget for the service."""
    rules = [stored(EntityId("budget", "web", None), {}, per="service", **budget)]
    present = the_present(rules=rules)
    kept = [one for one in present.entities if one.entity.node in {None, *REPLICAS}]
    return replace(present, entities=tuple(kept))


def script(hold: str, *faults: str) -> Rehearsal:
    changes = [one for one in commands("sleep 2") if one.entity.node in REPLICAS]  # type: ignore[union-attr]
    return Rehearsal(changes, [*map(parse_fault, faults)], [parse_invariant(hold)], 3_600.0)


def test_a_budget_that_is_too_wide_is_found_without_any_fault() -> None:
    hold = "never: service:web below 2"
    searched = find(three(at_once=2), script(hold), range(1, 5))
    assert searched.tried == 1
    assert searched.found is not None
    assert searched.found.faults == []
    assert searched.found.breach.how == "1 where never below 2 was meant"
    assert {one.part for one in searched.found.steps} <= {"service.replace"}


def test_the_smallest_history_is_one_fault_on_one_node_and_is_replayed() -> None:
    hold = "never: service:web below 2"
    searched = find(three(at_once=1), script(hold), range(1, 30))
    found = searched.found
    assert found is not None
    assert searched.tried > 1
    [fault] = found.faults
    assert len(parse_fault(fault).on) == 1
    again = rehearse(three(at_once=1), script(hold, fault), found.seed)
    assert again.breaches[0] == found.breach
    calm = rehearse(three(at_once=1), script(hold), found.seed)
    assert calm.breaches == []


def test_what_no_fault_breaks_is_not_found() -> None:
    searched = find(three(at_once=1), script("always: count(service:web) = 3"), range(1, 4))
    assert (searched.tried, searched.found) == (4, None)


def test_a_search_without_a_condition_is_refused() -> None:
    with pytest.raises(HapteraError, match="there is no condition to break"):
        find(three(at_once=1), Rehearsal(commands("sleep 2")), range(1, 2))
