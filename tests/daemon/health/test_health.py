"""What a parent writes of the health of its nodes, by what was measured and what is desired."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from haptera.core.state.allowance import TURN_WORK_MAX
from haptera.daemon.health.health import (
    JUDGED_AT_ONCE,
    WHO,
    HealthKeeper,
    HealthWrites,
    limits_of,
)
from haptera.health.care import CareLimits
from haptera.health.readings import Timed
from haptera.model.answers.views import BrakeView, Condition, DesiredView, EntityView, ObservedView
from haptera.model.entity import parse_entity
from haptera.planner.domain.pieces import at_once

BEGIN = 1_795_284_000.0
SITE = "site"
LIMITS = CareLimits(at_once=1, share=50, well_s=300)
RULE = {"sensors": "temp.inlet", "pipeline": "above 35 clear 32 for 20s", "mode": "act"}
DRAINED = {"work": "draining", "work_why": "inlet-hot: temp.inlet at 40 (degraded)"}
OPENED = dict.fromkeys(DRAINED)
ILL = {"grade": "degraded", "says": "inlet-hot (temp.inlet): degraded"}


@dataclass
class Holder:
    held: bool


@dataclass
class Queue:
    duties: dict[str, object] = field(default_factory=dict)
    holders: dict[str, Holder] = field(default_factory=dict)


@dataclass
class Jobs:
    queue: Queue = field(default_factory=Queue)


class Cluster:
    """A cluster of four nodes, of which everything that is written comes to be so."""

    def __init__(self) -> None:
        self.jobs = Jobs()
        self.brake_why: str | None = None
        self.queries = self
        self.start_anew()
        self.views = {f"node:n{one}": a_view(f"node:n{one}") for one in range(1, 5)}
        self.desire("health-rule:inlet-hot", SITE, **RULE)
        self.now = BEGIN
        self.looked()

    def start_anew(self) -> None:
        """Another process of the parent."""
        self.health = HealthKeeper(
            cast("Any", self), cast("Any", self.jobs), cast("Any", None), LIMITS
        )

    def desire(self, name: str, owner: str, **values: Any) -> None:
        before = self.views.get(name, a_view(name)).desired
        held = {key: DesiredView(value, owner) for key, value in values.items()}
        left = {**before, **held}
        self.views[name] = a_view(
            name, {key: one for key, one in left.items() if values.get(key, 1) is not None}
        )

    def passes(self, seconds: int, **celsius: float) -> None:
        """Time passes, and these inlets are read each 10 s; all others have 20 °C."""
        for _ in range(0, seconds, 10):
            self.now += 10
            for name in ("n1", "n2", "n3", "n4"):
                value = celsius.get(name, 20.0)
                self.health.ward.add(name, "temp.inlet", Timed(self.now, value), self.now)

    def looked(self) -> HealthWrites:
        writes = at_once(self.health.decide(self.views, self.now))
        assert {*writes.declare} == writes.desired.keys() - self.views.keys()
        for name, patch in writes.desired.items():
            self.desire(name, WHO, **patch)
        for name in writes.undeclare:
            del self.views[name]
        return writes

    def work(self) -> dict[str, tuple[object, str]]:
        """What is desired of the work of nodes, and by whom."""
        views = [one for one in self.views.values() if "work" in one.desired]
        return {
            one.name: (one.desired["work_why"].value, one.desired["work"].owner) for one in views
        }

    def care(self) -> dict[str, object]:
        return {
            view.name: view.desired["care"].value
            for view in self.views.values()
            if view.kind == "health" and "care" in view.desired
        }

    def brake(self) -> BrakeView:
        return BrakeView(self.brake_why, 0)


def a_view(name: str, desired: dict[str, DesiredView] | None = None) -> EntityView:
    entity = parse_entity(name)
    observed = {}
    if entity.kind == "replica":
        observed = {"run": ObservedView("running", known=True, method="read", by="l", age_ms=1)}
    return EntityView(
        entity=name,
        kind=entity.kind,
        name=entity.name,
        node=entity.node,
        revision=1,
        attributes={},
        desired=desired or {},
        observed=observed,
        condition=Condition.CONVERGED,
        chain=[],
        since_ms=0,
    )


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_node_that_a_rule_speaks_of_is_drained_then_out_then_given_back(cluster) -> None:
    cluster.jobs.queue.holders["n1"] = Holder(held=True)
    cluster.passes(60, n1=40.0)
    writes = cluster.looked()
    since = int(BEGIN) + 10
    health = {**ILL, "care": "spared", "since": since}
    assert writes.desired == {"health:n1": health, "node:n1": DRAINED}
    assert cluster.looked() == HealthWrites()

    cluster.jobs.queue.holders["n1"] = Holder(held=False)
    assert cluster.looked().desired == {"health:n1": {"care": "out"}}
    assert cluster.looked() == HealthWrites()

    cluster.passes(60)
    assert cluster.looked().desired == {"health:n1": {"grade": "ok", "says": None, "since": None}}
    cluster.passes(290)
    assert cluster.looked() == HealthWrites()
    cluster.passes(10)
    assert cluster.looked() == HealthWrites(undeclare=["health:n1"], desired={"node:n1": OPENED})
    assert cluster.care() == {}


def test_a_node_is_not_out_while_a_replica_runs_there(cluster) -> None:
    cluster.views["replica:db.0@n1"] = a_view("replica:db.0@n1")
    cluster.passes(60, n1=40.0)
    cluster.looked()
    cluster.looked()
    assert cluster.care() == {"n1": "spared"}
    del cluster.views["replica:db.0@n1"]
    cluster.looked()
    assert cluster.care() == {"n1": "out"}


def test_the_budget_and_a_brake_stop_the_next_and_say_so(cluster) -> None:
    cluster.passes(60, n1=40.0, n2=40.0)
    cluster.looked()
    assert cluster.care() == {"n1": "spared"}
    says = cluster.views["health:n2"].desired["says"].value
    assert says == "inlet-hot (temp.inlet): degraded; left: 1 are in care, and no more may be"

    braked = Cluster()
    braked.brake_why = "3 of 4 nodes fell silent"
    braked.passes(60, n1=40.0)
    braked.looked()
    assert braked.care() == {}
    assert "the brake is on: 3 of 4" in str(braked.views["health:n1"].desired["says"].value)


def test_an_inlet_that_is_hot_everywhere_disturbs_nobody(cluster) -> None:
    cluster.passes(60, n1=40.0, n2=40.0, n3=40.0, n4=40.0)
    writes = cluster.looked()
    assert (cluster.care(), cluster.work()) == ({}, {})
    assert len(writes.desired) == 4


def test_a_rule_that_suggests_is_told_and_not_acted_on(cluster) -> None:
    cluster.desire("health-rule:inlet-hot", SITE, mode="suggest")
    cluster.looked()
    cluster.passes(60, n1=40.0)
    cluster.looked()
    assert (cluster.care(), cluster.work()) == ({}, {})
    assert cluster.views["health:n1"].desired["grade"].value == "degraded"


def test_a_drain_and_a_care_of_a_person_are_left_to_them(cluster) -> None:
    cluster.desire("node:n1", "user:eve", work="draining", work_why="board swap")
    cluster.desire("health:n2", "user:eve", care="spared")
    cluster.passes(60, n1=40.0)
    cluster.looked()
    assert cluster.care() == {"n1": "spared", "n2": "spared"}, "a person's counts in no budget"
    cluster.looked()
    for _ in range(2):
        cluster.passes(310)
        cluster.looked()
    assert cluster.work() == {"n1": ("board swap", "user:eve")}
    assert cluster.care() == {"n2": "spared"}


def test_a_parent_that_starts_anew_goes_on_with_the_care_that_it_finds(cluster) -> None:
    cluster.passes(60, n1=40.0)
    cluster.looked()
    later = Cluster()
    later.views = cluster.views
    later.looked()
    assert later.care() == {"n1": "out"}, "nothing runs there, and nothing was read yet"
    later.passes(310)
    later.looked()
    later.passes(310)
    later.looked()
    assert (later.care(), later.work()) == ({}, {})


def test_what_a_silent_sensor_said_last_stays_and_moves_nothing_new(cluster) -> None:
    cluster.passes(60, n1=40.0)
    cluster.looked()
    cluster.now += 3_600
    cluster.looked()
    assert cluster.care() == {"n1": "out"}, "nothing says that it is well"
    assert cluster.views["health:n1"].desired["grade"].value == "degraded"


def test_a_node_that_is_gone_leaves_nothing(cluster) -> None:
    cluster.passes(60, n1=40.0)
    cluster.looked()
    del cluster.views["node:n1"]
    cluster.looked()
    assert "health:n1" not in cluster.views


def test_a_budget_of_the_site_says_how_many_may_be_in_care(cluster) -> None:
    cluster.desire("budget:care", SITE, per="health", at_once=0)
    cluster.desire("budget:steps", SITE, per="node", at_once=4)
    cluster.passes(60, n1=40.0)
    cluster.looked()
    assert cluster.care() == {}

    cluster.desire("budget:care", SITE, per="health", at_once=1)
    cluster.looked()
    assert cluster.care() == {"n1": "spared"}


def test_of_several_budgets_the_least_counts_and_what_none_says_is_no_limit() -> None:
    said: tuple[dict[str, str | int], ...] = (
        {"per": "health", "at_once": 7},
        {"per": "health", "share": 30},
        {"per": "parent", "at_once": 1},
    )
    budgets = [
        a_view(f"budget:b{number}", {key: DesiredView(value, SITE) for key, value in one.items()})
        for number, one in enumerate(said)
    ]
    assert limits_of(budgets, LIMITS) == CareLimits(at_once=7, share=30, well_s=300)
    assert limits_of(budgets[:1], LIMITS).most(1_000) == 7
    assert limits_of(budgets[2:], LIMITS) == LIMITS


RAMP = {"sensors": "temp.inlet", "pipeline": "window 2m | trend above 60 in 10m", "mode": "act"}


def rises(cluster: Cluster) -> None:
    """An inlet gets warmer until it is predicted to be too hot."""
    for celsius in range(20, 36):
        cluster.passes(10, n1=float(celsius))
        cluster.looked()


def stays(cluster: Cluster, celsius: float) -> None:
    """It is at this all at once, until nothing is predicted any more."""
    cluster.passes(600, n1=celsius)
    cluster.looked()


def scores(cluster: Cluster) -> dict[str, object]:
    found = cluster.views.get("health-score:ramp")
    return {} if found is None else {key: one.value for key, one in found.desired.items()}


def test_predictions_are_scored_and_the_scores_outlive_the_parent(cluster) -> None:
    cluster.desire("health-rule:ramp", SITE, **{**RAMP, "mode": "suggest"})
    rises(cluster)
    stays(cluster, 20.0)
    assert scores(cluster) == {"came_true": 0, "came_not": 1, "undecided": 0}

    cluster.start_anew()
    rises(cluster)
    stays(cluster, 70.0)
    assert scores(cluster) == {"came_true": 1, "came_not": 1, "undecided": 0}


def test_a_rule_that_was_wrong_too_often_only_suggests(cluster) -> None:
    wrong = {"came_true": 1, "came_not": 19, "undecided": 0}
    cluster.desire("health-rule:ramp", SITE, **RAMP, precision=80)
    cluster.desire("health-score:ramp", WHO, **wrong)
    cluster.start_anew()
    rises(cluster)
    assert cluster.care() == {}

    cluster.desire("health-rule:ramp", SITE, **RAMP, precision=5)
    cluster.start_anew()
    rises(cluster)
    assert cluster.care() == {"n1": "out"}


def test_all_nodes_are_judged_in_slices_while_others_measure() -> None:
    cluster = Cluster()
    cluster.passes(60, n1=40.0)
    for number in range(500):
        name = f"node:more{number}"
        cluster.views[name] = a_view(name)
    costs = []
    for cost in cluster.health.decide(cluster.views, cluster.now):
        costs.append(cost)
        new = Timed(cluster.now, 20.0)
        cluster.health.ward.add(f"new{len(costs)}", "temp.inlet", new, cluster.now)
    assert len(costs) > 500 / JUDGED_AT_ONCE
    assert max(costs) <= TURN_WORK_MAX / 2
    assert "health:n1" in cluster.looked().desired
