"""One module on the bench: real engine, fake device, a clock of its own."""

import asyncio
import threading
from dataclasses import dataclass, field

from haptera.kinds import KINDS, node
from haptera.kinds.node import Power
from haptera.kinds.service import Run
from haptera.model.answers.views import Condition
from haptera.sdk import ANY, PARENT, Applied, Kind, Module, Plain, Policy, Refused, Target, Variable
from haptera.testing.bench import Bench


@dataclass
class Switch:
    """A power switch: what it shows, what it was told, and how it fails."""

    shows: Power = Power.OFF
    told: list[str] = field(default_factory=list)
    refuses: str | None = None
    refusals: int = 1_000
    deaf: bool = False

    def turn(self, power: Power) -> None:
        self.told.append(power)
        if self.refuses is not None and len(self.told) <= self.refusals:
            raise Refused(self.refuses)
        if not self.deaf:
            self.shows = power


module: Module[Switch] = Module(
    "switch", connect=lambda target: Switch(), where={node.platform: "test"}, context=PARENT
)
power = module.serves(node.power, fails_to=Power.HUNG)


@power.look(every_s=30, outcomes=(Power.OFF, Power.ON))
async def look(switch: Switch) -> Power:
    return switch.shows


STUBBORN = Policy(3, backoff_ms=2_000, backoff_ms_max=60_000, cool_down_ms=600_000)


@power.step(Power.OFF, Power.ON, within_s=5, late_s=2, policy=STUBBORN)
async def switch_on(switch: Switch) -> None:
    switch.turn(Power.ON)


@power.step(Power.ON, Power.OFF, within_s=5, disruptive=True)
async def switch_off(switch: Switch) -> None:
    switch.turn(Power.OFF)


def bench(switch: Switch) -> Bench[Switch]:
    return Bench(module, {"platform": "test"}, on=switch)


def test_a_node_is_looked_at_then_switched_on_then_looked_at_again() -> None:
    device = bench(switch := Switch())
    view = asyncio.run(device.settle({"power": "on"}))

    assert (view.condition, view.why) == (Condition.CONVERGED, None)
    assert device.calls == ["look", "switch_on", "look"]
    assert switch.told == ["on"]


def test_a_device_that_refuses_is_asked_again_and_its_words_are_told() -> None:
    device = bench(switch := Switch(refuses="the interlock is open"))
    view = asyncio.run(device.settle({"power": "on"}, within_s=3))

    assert view.condition is Condition.STUCK
    assert view.why == "switch.switch_on: the interlock is open"
    assert switch.told == ["on", "on"]


def test_a_device_that_goes_on_refusing_is_given_up_for_a_while_as_its_policy_says() -> None:
    device = bench(switch := Switch(refuses="the interlock is open"))
    view = asyncio.run(device.settle({"power": "on"}, within_s=60))

    assert view.condition is Condition.STUCK
    assert view.why == (
        "switch.switch_on: the interlock is open; given up after 3 attempts, for 10 min"
    )
    assert switch.told == ["on"] * 3
    asyncio.run(device.settle({"power": "on"}, within_s=50))
    assert switch.told == ["on"] * 6  # a new process counts anew


def test_nothing_needs_a_person_once_its_cause_is_gone() -> None:
    device = bench(switch := Switch(refuses="the interlock is open", refusals=3))
    view = asyncio.run(device.settle({"power": "on"}, within_s=700))

    assert (view.condition, view.error) == (Condition.CONVERGED, None)
    assert switch.told == ["on"] * 4  # three attempts, and one after the cool-down


def test_a_step_without_effect_is_not_repeated_before_its_outcome_was_read() -> None:
    device = bench(switch := Switch(deaf=True))
    view = asyncio.run(device.settle({"power": "on"}, within_s=7))

    assert view.why == "switch.switch_on: returned, but power is off"
    assert switch.told == ["on"] * 2
    between = " ".join(device.calls).split("switch_on")
    assert all("look" in looks for looks in between)


def test_a_disruptive_step_is_taken_where_the_node_permits_it() -> None:
    device = bench(switch := Switch(shows=Power.ON))
    view = asyncio.run(device.settle({"power": "off"}, within_s=60))

    assert view.condition is Condition.CONVERGED
    assert switch.told == ["off"]


def test_a_disruptive_step_is_not_taken_while_the_node_is_busy() -> None:
    switch = Switch(shows=Power.ON)
    device = Bench(module, {"platform": "test"}, on=switch, busy="2 jobs run")
    view = asyncio.run(device.settle({"power": "off"}, within_s=60))

    assert (view.condition, view.why) == (
        Condition.WAITING,
        "switch.switch_off waits: n01 does not permit it: 2 jobs run",
    )
    assert [link.part for link in view.chain] == ["switch.switch_off"]
    assert switch.told == []


def test_a_node_of_another_class_has_no_chain_and_the_reason_says_so() -> None:
    device = Bench(module, {"platform": "other"}, on=Switch())
    view = asyncio.run(device.settle({"power": "on"}, within_s=60))

    assert view.condition is Condition.STUCK
    assert view.why is not None
    assert "power" in view.why


def test_a_function_that_hangs_is_not_answered_in_time_and_costs_no_more() -> None:
    for hanging in (hangs_for_ever(asyncio.Event), hangs_for_ever(threading.Event)):
        device: Bench[Target] = Bench(hanging, {"platform": "test"})
        view = asyncio.run(device.settle({"power": "on"}, within_s=1))
        assert (view.condition, view.why) == (
            Condition.STUCK,
            "hanging.look: no answer within 0.1 s",
        )


def hangs_for_ever(event: type[asyncio.Event | threading.Event]) -> Module[Target]:
    """A module whose look waits for what never comes, in the event loop or in a thread."""
    hanging: Module[Target] = Module("hanging", connect=lambda target: target, context=PARENT)
    power = hanging.serves(node.power)

    async def look(target: Target) -> Power:
        await asyncio.Event().wait()
        return Power.ON

    def plain(target: Target) -> Power:
        threading.Event().wait()
        return Power.ON

    plain.__name__ = "look"
    function = look if event is asyncio.Event else plain
    power.look(within_s=0.1, outcomes=(Power.OFF, Power.ON))(function)
    power.step(Power.OFF, Power.ON, within_s=1)(lambda target: None)
    return hanging


@dataclass(frozen=True)
class PumpSettings:
    litres: int


pumps = Kind(
    "pump",
    (
        flow := Variable("pump", "flow", Run, {one: number for number, one in enumerate(Run)}),
        current := Variable(
            "pump", "current", Applied, {one: number for number, one in enumerate(Applied)}
        ),
    ),
    plain=(Plain("pump", "fluid", str, 32),),
    of_cluster=True,
)
PUMPS = {**KINDS, "pump": pumps}
pump: Module[Target] = Module(
    "pump", connect=lambda target: target, context=PARENT, settings=PumpSettings
)
flows, in_force = pump.serves(flow), pump.serves(current)


@flows.look(outcomes=(Run.STOPPED, Run.RUNNING))
async def look_flow(target: Target) -> Run:
    return Run.RUNNING if (target.run_dir / "fluid").exists() else Run.STOPPED


@in_force.look(outcomes=(Applied.STALE, Applied.CURRENT), requires={flow: Run.RUNNING})
async def look_current(target: Target) -> str:
    return (target.run_dir / "digest").read_text()


@pump.step(flows.goes(Run.STOPPED, Run.RUNNING), in_force.goes(ANY, Applied.CURRENT), within_s=5)
async def begin(target: Target) -> None:
    target.progress(f"{target.settings.litres} l of {target.values['fluid']}", 0.5)
    (target.run_dir / "fluid").touch()
    (target.run_dir / "digest").write_text(target.digest)


def test_functions_have_a_real_target_of_the_clusters_own_entity() -> None:
    device: Bench[Target] = Bench(pump, {}, settings={"litres": 3}, kinds=PUMPS)
    view = asyncio.run(device.settle({"flow": "running", "fluid": "oil"}))
    assert (view.condition, str(device.entity)) == (Condition.CONVERGED, "pump:bench")
    assert view.observed["current"].value == "current"
    assert device.progress == [("3 l of oil", 0.5)]


def test_what_is_raised_is_told_as_a_process_tells_it() -> None:
    device = Bench(module, {"platform": "test"}, connect=Missing)
    view = asyncio.run(device.settle({"power": "on"}, within_s=1))
    assert view.why == "switch.look: KeyError: 'pump'"


class Missing(Switch):
    def __init__(self, target: Target) -> None:
        super().__init__(Power(target.attributes["pump"]))


def test_a_process_that_ends_within_a_step_is_started_anew_and_the_outcome_read() -> None:
    device = bench(switch := Crashing())
    view = asyncio.run(device.settle({"power": "on"}))
    assert view.condition is Condition.CONVERGED
    assert (switch.told, device.calls[:2]) == (["on"], ["look", "switch_on"])


class Crashing(Switch):
    def turn(self, power: Power) -> None:
        super().turn(power)
        raise SystemExit(3)


def test_a_look_that_judges_whether_what_is_desired_is_in_force_is_told_what_to_answer() -> None:
    judging: Module[str] = Module("judging", connect=lambda target: "current")
    run, applied = judging.serves(flow), judging.serves(current)
    applied.look(outcomes=(Applied.STALE, Applied.CURRENT))(_same)
    run.look(outcomes=(Run.STOPPED, Run.RUNNING))(_runs)
    going = (run.goes(ANY, Run.RUNNING), applied.goes(ANY, Applied.CURRENT))
    judging.step(*going, within_s=5)(_begins)
    device: Bench[str] = Bench(judging, {}, kinds=PUMPS)
    view = asyncio.run(device.settle({"flow": "running", "fluid": "oil"}, within_s=1))
    assert view.error is not None
    assert "answered 'current', which is no digest" in view.error


async def _same(answer: str) -> str:
    return answer


async def _runs(answer: str) -> Run:
    return Run.RUNNING


async def _begins(answer: str) -> None: ...
