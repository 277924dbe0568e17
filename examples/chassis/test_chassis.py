"""The module of the chassis, on a bench."""

import asyncio
from pathlib import Path

from examples.chassis.chassis import STAGES, Blade, Manager, module
from haptera.kinds.node import Power
from haptera.model.entity import node_id
from haptera.sdk import Condition, Target
from haptera.testing.bench import Bench


def test_what_the_manager_knew_before_a_step_is_no_outcome_of_it(tmp_path: Path) -> None:
    (tmp_path / "slot-1").write_text(Power.OFF)
    (tmp_path / "age").write_text("3")
    blade = Blade(Manager(tmp_path), "slot-1", Target(node_id("n01")))
    bench = Bench(module, {"bmc": "slot-1", "jobs": "none", "has_agent": "never"}, on=blade)
    view = asyncio.run(bench.settle({"power": Power.ON}))
    assert view.condition is Condition.CONVERGED
    assert view.observed["power"].age_ms >= 3_000
    # It is looked at until what is told is from after the step, which is taken once.
    assert bench.calls[:2] == ["look", "switch_on"]
    assert set(bench.calls[2:]) == {"look"}
    assert len(bench.calls[2:]) > 1


def test_a_blade_is_powered_up_stage_by_stage_and_down_as_one_of_many(tmp_path: Path) -> None:
    (tmp_path / "slot-1").write_text(Power.OFF)
    blade = Blade(Manager(tmp_path), "slot-1", Target(node_id("n01")))
    bench = Bench(module, {"bmc": "slot-1", "jobs": "none", "has_agent": "never"}, on=blade)
    for wanted in (Power.ON, Power.OFF):
        view = asyncio.run(bench.settle({"power": wanted}))
        assert view.condition is Condition.CONVERGED
    assert bench.calls == ["look", "switch_on", "look", "look", "switch_off", "look"]
    requests = (tmp_path / "requests").read_text().splitlines()
    stages = [f"slot-1: {stage}" for stage in STAGES]
    assert [one for one in requests if one != "powers"] == [*stages, "on slot-1", "off slot-1"]
