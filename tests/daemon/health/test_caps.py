"""A parent's writes of power profiles, by what its nodes draw and what is capped."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import pytest
from msgspec.structs import replace

from haptera.core.state.allowance import TURN_WORK_MAX
from haptera.daemon.health.caps import MEASURED_AT_ONCE, PROFILES, WHO, CapKeeper, Patch
from haptera.health.capping import CALM_S, SETTLE_S, SHARES
from haptera.health.readings import Timed
from haptera.health.rule import Grade, HealthRule, Mode, parse_pipeline
from haptera.health.ward import Ward
from haptera.kinds.node import PowerProfile
from haptera.model.answers.views import DesiredView, ObservedView
from haptera.model.entity import EntityId
from haptera.model.reading import Reading
from haptera.planner.domain.pieces import at_once
from haptera.selectors.selector import Selector
from tests.daemon.health.test_health import BEGIN, SITE, Holder, Jobs, a_view

RESTRAINTS = {str(profile): restraint for restraint, profile in PROFILES.items()}
HOT = HealthRule("hot", "temp.*", parse_pipeline("above 90"), Grade.DEGRADED, Mode.SUGGEST)
CAP = "power-cap:hall"


class Measured(NamedTuple):
    value: float


class Cluster:
    """Four nodes of 400 W, which draw as their profiles say, and obey at once."""

    def __init__(self) -> None:
        self.jobs = Jobs()
        self.ward = Ward([HOT])
        self.now = BEGIN
        self.load = dict.fromkeys(("n1", "n2", "n3", "n4"), 400.0)
        self.inlets: dict[str, float] = {}
        self.silent: set[str] = set()
        self.views = {f"node:{name}": a_view(f"node:{name}") for name in self.load}
        for name in self.load:
            self.reads(name, PowerProfile.PERFORMANCE)
        self.start_anew()

    def start_anew(self) -> None:
        self.queries = source = cast("Any", self)
        self.caps = CapKeeper(source, cast("Any", self.jobs), source, self.ward)

    def reads(self, name: str, profile: PowerProfile | None) -> None:
        seen = ObservedView(
            str(profile), known=profile is not None, method="read", by="c", age_ms=1
        )
        view = self.views[f"node:{name}"]
        self.views[view.entity] = replace(view, observed={"power_profile": seen})

    def desire(self, entity: str, owner: str, values: Mapping[str, Any]) -> None:
        view = self.views.get(entity, a_view(entity))
        left = {**view.desired, **{key: DesiredView(one, owner) for key, one in values.items()}}
        desired = {key: one for key, one in left.items() if one.value is not None}
        self.views[entity] = replace(view, desired=desired)

    def looked(self) -> dict[str, Patch]:
        patches = at_once(self.caps.decide(self.views, self.now))
        for entity, patch in patches.items():
            self.desire(entity, WHO, patch)
            if (profile := patch["power_profile"]) is not None:
                self.reads(entity.removeprefix("node:"), PowerProfile(str(profile)))
        return patches

    def passes(self, seconds: float) -> None:
        for _ in range(0, round(seconds), 5):
            self.now += 5
            self.looked()

    def profiles(self) -> dict[str, str]:
        """Of the nodes that are lowered."""
        found = {one.name: one.desired_value("power_profile") for one in self.views.values()}
        return {name: str(profile) for name, profile in found.items() if profile is not None}

    def drawn(self, name: str) -> float:
        profile = self.views[f"node:{name}"].known_value("power_profile")
        return self.load[name] * SHARES[RESTRAINTS.get(str(profile), RESTRAINTS["performance"])]

    # The board, and the queries of the source.

    def last(self, entity: EntityId) -> dict[str, Measured]:
        if entity.name in self.silent:
            return {}
        found = {"bmc.power[total]": Measured(self.drawn(entity.name))}
        inlet = self.inlets.get(entity.name)
        return found if inlet is None else {**found, "bmc.temp.inlet": Measured(inlet)}

    def reading(self, _kind: str, series: str) -> Reading:
        return Reading("node", series.partition("[")[0], unit="°C")

    def means(self, selector: Selector, entity: EntityId) -> bool:
        return selector.could_mean(entity)


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.desire(CAP, SITE, {"of": "node:n[1-3]", "watts": 1_100, "leads": "node:n1"})
    return made


def test_nodes_are_lowered_until_the_cap_holds_and_say_why(cluster: Cluster) -> None:
    cluster.jobs.queue.holders["n2"] = Holder(held=True)
    assert cluster.looked() == {
        "node:n3": {
            "power_profile": "powersave",
            "power_why": "hall: 1200 W are drawn of 1100 W",
        }
    }
    assert sum(map(cluster.drawn, ("n1", "n2", "n3"))) <= 1_100


def test_they_are_raised_once_there_is_room_for_long_enough_and_then_left(cluster: Cluster) -> None:
    cluster.looked()
    lowered = cluster.profiles()
    cluster.load = dict.fromkeys(cluster.load, 200.0)
    cluster.passes(CALM_S - 10)
    assert cluster.profiles() == lowered
    cluster.passes(2 * CALM_S + 60)
    assert cluster.profiles() == {}
    assert cluster.views["node:n2"].known_value("power_profile") == "performance"


def test_between_two_decisions_the_first_one_is_measured(cluster: Cluster) -> None:
    cluster.looked()
    cluster.load["n1"] = 900.0
    cluster.passes(SETTLE_S - 5)
    assert "n1" not in cluster.profiles()
    cluster.passes(10)
    assert cluster.profiles()["n1"] == "powersave"


def test_what_a_person_desires_stays_and_counts(cluster: Cluster) -> None:
    cluster.desire("node:n3", "user:eve", {"power_profile": "performance"})
    cluster.looked()
    assert cluster.profiles() == {"n2": "powersave", "n3": "performance"}


def test_a_node_that_a_rule_says_is_hot_is_not_raised(cluster: Cluster) -> None:
    cluster.looked()
    assert cluster.profiles() == {"n2": "balanced", "n3": "balanced"}
    cluster.ward.add("n2", "temp.cpu[1]", Timed(cluster.now, 95.0), cluster.now)
    cluster.load = dict.fromkeys(cluster.load, 200.0)
    cluster.passes(4 * CALM_S)
    assert cluster.profiles() == {"n2": "balanced"}
    del cluster.views[CAP]
    cluster.looked()
    assert cluster.profiles() == {"n2": "balanced"}, "not even where no cap is on it"


def test_what_was_lowered_is_raised_where_its_cap_is_gone(cluster: Cluster) -> None:
    cluster.looked()
    del cluster.views[CAP]
    cluster.looked()
    assert set(cluster.profiles().values()) == {"performance"}
    cluster.looked()
    assert cluster.profiles() == {}
    assert cluster.looked() == {}


def test_a_node_that_is_off_does_not_count_and_stays_below_its_cap(cluster: Cluster) -> None:
    cluster.looked()
    off = ObservedView("off", known=True, method="read", by="l", age_ms=1)
    view = cluster.views["node:n3"]
    cluster.views["node:n3"] = replace(view, observed={**view.observed, "power": off})
    cluster.silent.add("n3")
    cluster.passes(60)
    assert cluster.profiles() == {"n2": "balanced", "n3": "balanced"}
    cluster.load["n1"] = 900.0
    cluster.passes(60)
    assert cluster.profiles() == {"n1": "balanced", "n2": "powersave", "n3": "balanced"}


def test_of_several_caps_on_a_node_the_one_that_allows_least_counts(cluster: Cluster) -> None:
    cluster.desire("power-cap:rack", SITE, {"of": "node:n3", "watts": 300})
    cluster.desire(CAP, SITE, {"watts": 5_000})
    cluster.looked()
    assert cluster.profiles() == {"n3": "powersave"}
    cluster.passes(4 * CALM_S)
    assert cluster.profiles() == {"n3": "powersave"}


def test_a_hot_inlet_is_heeded_without_watts(cluster: Cluster) -> None:
    cluster.views[CAP] = a_view(CAP)
    cluster.desire(CAP, SITE, {"inlet_celsius": 32})
    cluster.inlets = {"n1": 33.0, "n2": 25.0}
    cluster.looked()
    assert cluster.profiles() == {"n1": "balanced"}
    cluster.passes(60)
    assert cluster.profiles() == {"n1": "powersave"}


def test_a_parent_that_starts_anew_goes_on_with_what_it_finds(cluster: Cluster) -> None:
    cluster.looked()
    lowered = cluster.profiles()
    cluster.load = dict.fromkeys(cluster.load, 200.0)
    cluster.start_anew()
    cluster.passes(CALM_S - 10)
    assert cluster.profiles() == lowered
    cluster.passes(3 * CALM_S)
    assert cluster.profiles() == {}


def test_a_node_whose_profile_nobody_reads_counts_and_is_left(cluster: Cluster) -> None:
    cluster.reads("n3", None)
    cluster.looked()
    assert cluster.profiles() == {"n2": "powersave"}


def test_many_nodes_are_read_and_measured_in_slices() -> None:
    cluster = Cluster()
    names = [f"more{number}" for number in range(500)]
    cluster.load |= dict.fromkeys(names, 400.0)
    for name in names:
        cluster.views[f"node:{name}"] = a_view(f"node:{name}")
        cluster.reads(name, PowerProfile.PERFORMANCE)
    cluster.desire(CAP, SITE, {"watts": 100_000})
    costs = [*cluster.caps.decide(cluster.views, cluster.now)]
    assert len(costs) > len(names) / MEASURED_AT_ONCE
    assert max(costs) <= TURN_WORK_MAX / 2
