"""Troubles of nodes are counted once each, when they begin, and what was meant to be is none."""

from collections.abc import Iterable

import pytest

from haptera.core.views.lemons import COUNTS, Counts, count_troubles, lemons
from haptera.model.answers.lemons import Lemon
from haptera.model.answers.past import Changed, Happened, Sort


def seen(at_s: float, name: str, value: str | None, entity: str = "node:n1") -> Happened:
    return Happened(at_s, entity, Sort.SEEN, name, value, "bmc")


def tried(at_s: float, value: str, entity: str = "node:n1") -> Happened:
    return Happened(at_s, entity, Sort.TRIED, "bmc.switch_on", value, "no answer")


def graded(at_s: float, before: str | None, after: str | None) -> Changed:
    return Changed(1, at_s, "health:n1", "grade", before, after, "controller:health", None)


def counted(*happened: Happened, since: float = 10, **other: Iterable) -> dict[str, int]:
    """The counts of n1 that are not 0."""
    changed, jobs = other.get("changed", ()), other.get("jobs", ())
    found = count_troubles(happened, changed, jobs, since)
    assert {node for node, _ in found} <= {"n1"}
    return {name: found["n1", name] for name in COUNTS if found["n1", name]}


UP = (seen(1, "power", "on"), seen(2, "agent", "up"))


@pytest.mark.parametrize(
    ("happened", "count"),
    [
        pytest.param([*UP, seen(20, "agent", "up?")], 1, id="it fell silent"),
        pytest.param([*UP[1:], seen(20, "agent", None)], 1, id="no power is read of it"),
        pytest.param([*UP, seen(20, "power", "off")], 1, id="its power went by itself"),
        pytest.param(
            [*UP, seen(20, "power", "off"), seen(21, "agent", "up?")], 1, id="both, of one loss"
        ),
        pytest.param(
            [*UP, seen(20, "agent", "up?"), seen(25, "power", "off")], 1, id="the other way"
        ),
        pytest.param(
            [*UP, seen(20, "agent", "up?"), seen(30, "agent", "up"), seen(40, "agent", "up?")],
            2,
            id="twice",
        ),
        pytest.param(
            [*UP, seen(20, "power", "off?"), seen(20, "agent", "up?"), seen(22, "power", "off")],
            0,
            id="it was switched off",
        ),
        pytest.param([*UP, Happened(20, "", Sort.BEGUN), seen(21, "agent", "up")], 0, id="begun"),
        pytest.param([*UP, seen(9, "agent", "up?")], 0, id="before"),
    ],
)
def test_a_node_is_lost_once_it_is_gone_and_nobody_has_switched_it_off(
    happened: list[Happened], count: int
) -> None:
    assert counted(*happened) == ({"lost": count} if count else {})


def test_each_time_that_a_service_fails_counts_and_no_time_that_this_is_found_again() -> None:
    web = "service:web@n1"
    fails = [seen(20, "run", "running", web), seen(30, "run", "failed", web)]
    begun = Happened(31, "", Sort.BEGUN)
    again = [seen(40, "run", "failed?", web), begun, seen(50, "run", "failed", web)]
    assert counted(*fails, *again) == {"restarts": 1}
    assert counted(*fails, *again, seen(60, "run", "running", web), fails[1]) == {"restarts": 2}


def test_steps_jobs_and_grades_are_counted_since_the_time() -> None:
    happened = [tried(5, "failed"), tried(15, "worked"), tried(20, "failed")]
    # It is ill from the first grade on until it is well: one that changes begins nothing.
    grades = [graded(5, None, "degraded"), graded(12, None, "degraded")]
    grades += [graded(13, "degraded", "failed"), graded(14, "failed", "ok"), graded(15, "ok", "ok")]
    found = counted(
        *happened, tried(21, "failed", "service:web@n1"), changed=grades, jobs=["n1", "n1"]
    )
    assert found == {"failed_jobs": 2, "ill": 1, "failed_steps": 2}


def test_what_is_on_no_node_is_nobodys_trouble() -> None:
    assert counted(tried(20, "failed", "image:debian"), seen(20, "run", "failed", "image:a")) == {}


def test_the_worst_come_first_beside_what_is_usual() -> None:
    nodes = {f"n{number}" for number in range(1, 6)}
    counts = Counts(dict.fromkeys(((node, "failed_steps") for node in nodes), 10))
    counts |= {("n2", "lost"): 3, ("n3", "lost"): 1, ("elsewhere", "lost"): 90}
    assert lemons(nodes, counts)[:3] == [
        # On average 0.8 were lost, and ten steps failed.
        Lemon("n2", lost=3, failed_steps=10, excess=2.6),
        Lemon("n3", lost=1, failed_steps=10, excess=1.5),
        Lemon("n1", failed_steps=10, excess=0.9),
    ]
    assert lemons({"n9"}, counts) == []
