"""Rehearsals of a whole site on a folded cluster: what they predict, and what they refuse."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from haptera.kinds import KINDS
from haptera.model.changes import Change, Desired, SetDesired, StoredEntity
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.modules import load
from haptera.rehearsal.faults import parse_fault
from haptera.rehearsal.invariants import parse_invariant
from haptera.rehearsal.present import Present, pace_of
from haptera.rehearsal.rehearse import Rehearsal, RehearsalRun, rehearse
from haptera.rehearsal.summary import Spread, summed_up
from haptera.testing.actual import PartTimes, Values

NODES = tuple(f"n{number}" for number in range(1, 9))
MODULES = ("labnode", "service", "jobs")
PACE = PartTimes({"service.replace": 4_000_000_000, "sync.hear": 30_000_000_000})


def web(node: str) -> EntityId:
    return EntityId("service", "web", node)


def the_present(
    pace: PartTimes = PACE, busy: Iterable[str] = (), rules: Iterable[StoredEntity] = ()
) -> Present:
    """Eight nodes that are on, each with a service that runs as it should."""
    entities = [*rules]
    values: dict[EntityId, Values] = {}
    for name in NODES:
        entities.append(stored(node_id(name), {"platform": "labnode"}, power="on"))
        entities.append(stored(web(name), {}, run="running", command="sleep 1"))
        values[node_id(name)] = {"power": "on", "agent": "up", "busy": "free"}
        values[web(name)] = {"run": "running", "applied": "current"}
    for name in busy:
        values[node_id(name)]["busy"] = "busy"
    manifests = tuple(load(name).manifest() for name in MODULES)
    return Present(1, tuple(entities), values, manifests, KINDS, pace)


def stored(entity: EntityId, attributes: Mapping[str, str], **desired: str | int) -> StoredEntity:
    given = {name: Desired(value, "site") for name, value in desired.items()}
    return StoredEntity(entity, {**attributes}, "site", given, 1)


def commands(text: str) -> list[Change]:
    """Another command for each service, which replaces it."""
    return [SetDesired(web(name), "command", text, "site") for name in NODES]


def played(
    *faults: str, seed: int = 1, hold: Iterable[str] = (), **present: object
) -> RehearsalRun:
    rehearsal = Rehearsal(
        commands("sleep 2"), [*map(parse_fault, faults)], [*map(parse_invariant, hold)]
    )
    return rehearse(the_present(**present), rehearsal, seed)  # type: ignore[arg-type]


def test_one_service_after_the_other_is_replaced() -> None:
    run = played()
    replaced = [one for one in run.spans if one.part == "service.replace"]
    assert {one.entity for one in replaced} == {str(web(name)) for name in NODES}
    assert (run.disrupted, run.disrupted_at_once) == (set(NODES), 1)
    assert (run.stuck, run.restless, run.breaches) == ({}, {}, [])
    assert run.settled_s == max(one.to_s for one in run.spans)
    [longest, *_] = sorted(run.waited_s, key=run.waited_s.__getitem__, reverse=True)
    assert longest == "service.replace waits: the budget of service web allows 1 at once: …"


def test_the_same_seed_gives_the_same_run_and_another_one_another() -> None:
    faults = "n3: power cut at 2s for 1m", "parent dies at 5s for 20s"
    once, again, other = (played(*faults, seed=seed) for seed in (7, 7, 8))
    assert once == again
    assert once.spans != other.spans


def test_a_wider_budget_is_faster_and_disrupts_more_at_once() -> None:
    wide = stored(EntityId("budget", "wide", None), {}, per="service", at_once=4)
    run, narrow = played(rules=[wide]), played()
    assert run.disrupted_at_once == 4
    assert run.settled_s is not None
    assert narrow.settled_s is not None
    assert run.settled_s < narrow.settled_s / 2


def test_a_node_without_power_is_brought_back_with_what_ran_on_it() -> None:
    run = played("n1: power cut at 1s for 5s")
    parts = [one.part for one in run.spans if one.node == "n1" and not one.failed]
    assert parts[:2] == ["labnode.switch_on", "service.start"]
    assert run.settled_s is not None
    assert run.stuck == {}


def off() -> Rehearsal:
    changes = [SetDesired(node_id(name), "power", "off", "site") for name in NODES]
    return Rehearsal(changes, horizon_s=600.0)


def test_nodes_are_switched_off_as_their_gates_permit() -> None:
    run = rehearse(the_present(busy=["n1"]), off(), 1)
    assert run.refusals > 0
    assert [one for one in run.stuck if one.startswith("node:")] == ["node:n1"]
    assert "n1 does not permit it: jobs: a job runs" in run.stuck["node:n1"]
    assert {one.node for one in run.spans if one.part == "labnode.switch_off"} == {*NODES} - {"n1"}


def test_a_node_that_has_neither_gate_nor_agent_is_not_disturbed() -> None:
    bare = the_present()
    manifests = tuple(one for one in bare.manifests if one.name != "jobs")
    run = rehearse(replace(bare, manifests=manifests), off(), 1)
    assert {why for why in run.stuck.values() if "run module jobs" in why} == {*run.stuck.values()}


def test_what_nobody_mends_is_stuck_at_the_end_and_says_why() -> None:
    run = played("n2: nothing starts at 0s for 2d")
    assert run.settled_s is None
    assert run.stuck.keys() == {str(web("n2"))}
    assert "for 30 min" in run.stuck[str(web("n2"))]
    # Not again and again: what failed in one state is not tried in all that are like it.
    assert sum(one.node == "n2" for one in run.spans) < 48 * 4


def test_a_parent_that_dies_goes_on_where_it_was() -> None:
    run = played("parent dies at 6s for 2m")
    assert run.stuck == {}
    assert run.settled_s is not None
    assert run.settled_s > 126
    assert {one.node for one in run.spans if one.part == "service.replace"} == set(NODES)


def test_an_invariant_that_breaks_is_told_once_and_when() -> None:
    below = "never: count(service:web and run=running) below 8"
    run = played("n1: power cut at 30s for 1m", hold=[below, "always: count(power=on) >= 50%"])
    assert [(one.invariant, one.at_s >= 30) for one in run.breaches] == [(below, True)]


def test_steps_fail_as_often_as_they_did_there() -> None:
    often = PartTimes(PACE.usual_ns, {"service.replace": 0.5})
    runs = [played(seed=seed, pace=often) for seed in range(1, 6)]
    failed = sum(span.failed for run in runs for span in run.spans)
    ended = sum(span.part == "service.replace" for run in runs for span in run.spans)
    assert 0.3 < failed / ended < 0.7
    assert all(run.settled_s is not None for run in runs)


def test_a_change_is_over_as_soon_as_all_of_it_is_decided_on() -> None:
    passed: list[float] = []
    run = rehearse(the_present(), Rehearsal(commands("sleep 1")), 1, passed.append)
    assert (run.settled_s, passed) == (0.0, [0.0])


def test_what_would_be_refused_is_refused() -> None:
    change = [SetDesired(web("n1"), "run", "sideways", "site")]
    with pytest.raises(HapteraError, match=r"the change would be refused: .*sideways"):
        rehearse(the_present(), Rehearsal(change), 1)


def test_many_runs_are_summed_up() -> None:
    runs = [played(seed=seed) for seed in (1, 2, 3)]
    summary = summed_up(runs, 1, 86_400, PACE.usual_ns, ["own"])
    settled = sorted(one.settled_s or 0.0 for one in runs)
    assert summary.settled_s == Spread(settled[0], settled[1], settled[2], settled[2])
    assert summary.disrupted_nodes == Spread(8, 8, 8, 8)
    assert (summary.settled, summary.is_good, summary.missing) == (3, True, ["own"])
    assert "service.replace" not in summary.unmeasured


@pytest.mark.parametrize(
    "text",
    ["n1", "n1: meteor at 1h", "power cut at 1h", "n1: parent dies", "n1: power cut at noon", ""],
)
def test_what_is_no_fault_is_said_to_be_none(text: str) -> None:
    with pytest.raises(HapteraError):
        parse_fault(text)


@pytest.mark.parametrize(
    "text",
    ["always: power=on", "mostly: count(power=on) > 1", "always: count(power~~) > 1", "never: > 1"],
)
def test_what_is_no_invariant_is_said_to_be_none(text: str) -> None:
    with pytest.raises(HapteraError):
        parse_invariant(text)


def test_durations_and_failures_are_read_from_what_the_parent_measured() -> None:
    text = """# HELP haptera_steps_total Steps that ended, by outcome.
haptera_steps_total{outcome="failed",step="a.b"} 1.0
haptera_steps_total{outcome="worked",step="a.b"} 3.0
haptera_part_usual_duration_seconds{part="a.b"} 2.5
haptera_part_usual_duration_seconds{part="a.c"} nonsense
"""
    pace = pace_of(text)
    assert pace == PartTimes({"a.b": 2_500_000_000}, {"a.b": 0.25})
