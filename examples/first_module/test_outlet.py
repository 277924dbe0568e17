"""The outlet module on the bench: a real engine, a fake outlet, a clock of its own."""

import asyncio

from examples.first_module.outlet import Outlet, module
from haptera.sdk import Condition, Refused
from haptera.testing.bench import Bench


class FakeOutlet(Outlet):
    """Keeps its state to itself and writes down what it was told."""

    def __init__(self, state: str, *, refuses: str | None = None) -> None:
        self.state = state
        self.refuses = refuses
        self.told: list[str] = []

    async def ask(self, line: str) -> str:
        if line == "state":
            return self.state
        self.told.append(line)
        if self.refuses is not None:
            raise Refused(self.refuses)
        self.state = line
        return ""


def bench(outlet: Outlet) -> Bench[Outlet]:
    return Bench(module, {"platform": "outlet"}, on=outlet)


def test_a_dark_node_is_looked_at_switched_on_and_looked_at_again() -> None:
    device = bench(outlet := FakeOutlet("off"))
    view = asyncio.run(device.settle({"power": "on"}))

    assert view.condition is Condition.CONVERGED
    assert device.calls == ["look", "switch_on", "look"]
    assert outlet.told == ["on"]


def test_what_the_outlet_says_is_told_and_after_three_attempts_it_is_left_alone() -> None:
    device = bench(outlet := FakeOutlet("off", refuses="the fuse is out"))
    view = asyncio.run(device.settle({"power": "on"}, within_s=60))

    assert view.condition is Condition.STUCK
    assert view.why == ("outlet.switch_on: the fuse is out; given up after 3 attempts, for 10 min")
    assert outlet.told == ["on"] * 3


def test_a_node_that_is_busy_is_not_switched_off() -> None:
    outlet = FakeOutlet("on")
    device = Bench(module, {"platform": "outlet"}, on=outlet, busy="a job runs")
    view = asyncio.run(device.settle({"power": "off"}, within_s=60))

    assert view.why == "outlet.switch_off waits: n01 does not permit it: a job runs"
    assert outlet.told == []
