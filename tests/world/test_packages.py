"""Nodes that packages add much to: all of it is told, whatever the network loses."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

import pytest

from haptera.core.state.row import EntityState
from haptera.kinds import KINDS
from haptera.model.changes import Declare, SetDesired
from haptera.model.declared.schema import (
    DIGEST_BYTES_MAX,
    Applied,
    Attribute,
    Extension,
    Kind,
    Variable,
    extend,
)
from haptera.model.effects import Call
from haptera.model.entity import node_id
from haptera.model.events import Answered
from haptera.model.parts import Context, Look, Manifest
from haptera.modules import load
from haptera.testing.machine import MS, Answer, Machine
from haptera.testing.world import World
from tests.core.scenario import row_of
from tests.world.history import ROUGH


class Level(StrEnum):
    UNKNOWN = "unknown"
    LOW = "low"
    HIGH = "high-enough-to-be-worth-a-word"


PACKAGES = ("tide", "wind")
COUNT = 10
N01 = node_id("n01")
# What the looks of the packages read, by the sort of their variables.
SHOWN = {Level: Level.HIGH.value, Applied: "d" * DIGEST_BYTES_MAX}


def variables(package: str, values: type[StrEnum]) -> tuple[Variable[StrEnum], ...]:
    numbers = {one: number for number, one in enumerate(values)}
    names = [f"{package}.reading-{number}" for number in range(COUNT)]
    return tuple(Variable("node", name, values, numbers) for name in names)


def package(name: str, values: type[StrEnum]) -> tuple[Extension, Manifest]:
    """Ten variables and an attribute of a node, and the module that looks at them there."""
    added = variables(name, values)
    looks = tuple(
        Look(name, f"look_{one.name}", "node", one.name, tuple(values)[1:], every_ms=2_000)
        for one in added
    )
    attributes = (Attribute("node", f"{name}.ports", size_bytes_max=600),)
    return Extension(name, added, attributes), Manifest(name, "1", Context.SELF, looks, ())


class Gauge(Machine):
    """A machine of which the looks of packages all read the value that is `shown`."""

    shown = ""

    def handle(self, call: Call, answer: Answer, died: Callable[[], None]) -> None:
        if call.module not in PACKAGES:
            super().handle(call, answer, died)
        else:
            told = Answered(call.id, self.shown, self.clock.now, f"of {call.part}")
            self.clock.after(40 * MS, answer, told)


class Extended(World):
    """A cluster of one node, to which two packages add variables of this sort."""

    def __init__(self, seed: int, values: type[StrEnum]) -> None:
        packages = [package(one, values) for one in PACKAGES]
        self.node = extend(KINDS["node"], [extension for extension, _ in packages])
        manifests = [load("labnode").manifest(), *(manifest for _, manifest in packages)]
        super().__init__(seed, ["n01"], manifests, ROUGH)
        gauge = self.machines["n01"]
        assert isinstance(gauge, Gauge)
        gauge.shown = SHOWN[values]
        self.propose(
            [
                Declare(N01, {"platform": "labnode"}, "site"),
                SetDesired(N01, "power", "on", "site"),
                SetDesired(N01, "agent", "up", "site"),
            ]
        )
        self.run(1)

    def install(self, kinds: Mapping[str, Kind], manifests: Iterable[Manifest]) -> None:
        super().install({**kinds, "node": self.node}, manifests)

    def _machine(self, name: str) -> Machine:
        return Gauge(self.clock, name, self._booted, self._stopped)

    def row(self) -> EntityState:
        return row_of(self.parent, N01)


@pytest.mark.parametrize("values", [Level, Applied])
def test_two_packages_each_add_ten_variables_to_nodes(values: type[StrEnum]) -> None:
    """The digests take twice what a datagram holds, and the network loses every seventh."""
    world = Extended(1, values)
    assert world.settle(60)
    world.run(20)
    names = [one.name for package in PACKAGES for one in variables(package, values)]
    told = {
        name: (fact.value, fact.note)
        for name, fact in world.row().report.facts.items()
        if name in names
    }
    assert told == {name: (SHOWN[values], f"of look_{name}") for name in names}
    assert world.row().report.stands is not None


def test_what_does_not_fit_a_node_is_refused_when_it_is_set_with_the_bytes_of_each_part() -> None:
    world = Extended(2, Level)
    attributes = {"platform": "labnode", "tide.ports": "t" * 600, "wind.ports": "w" * 500}
    ticket = world.propose([Declare(N01, attributes, "site")])
    world.run(1)
    assert world.parent.replies[ticket].refusal == (
        "node:n01 takes 1190 bytes, 1035 at most: tide.ports 614, wind.ports 514, its names 27,"
        " its variables 18, platform 17 (make some of it shorter, or leave it out)"
    )
    assert world.settle(60)
