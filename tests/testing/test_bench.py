"""One module on the bench: real engine, fake device, a clock of its own."""

import asyncio
from dataclasses import dataclass, field

from haptera.kinds import node
from haptera.kinds.node import Power
from haptera.model.answers.views import Condition
from haptera.sdk import PARENT, Module, Policy, Refused
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
