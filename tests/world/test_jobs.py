"""Simulated clusters with jobs: no command of ours ever ends one, and nodes let jobs in again."""

from dataclasses import replace

import pytest

from haptera.core.state.limits import S
from haptera.core.state.side import PARENT
from haptera.model.changes import Declare, SetDesired, UnsetDesired
from haptera.model.entity import node_id
from haptera.model.parts import Manifest
from haptera.modules import load
from haptera.testing.machine import LATE_MS, Machine, Trouble
from haptera.testing.network import NetworkFaults
from haptera.testing.world import World
from tests.core.scenario import row_of
from tests.world.history import CALM, NODES, ROUGH

ACTS = 60
# How long a node that is left alone may take until jobs are let in.
OPENS_WITHIN_S = 900
TOLD_WITHIN_S = 60
# Of a BMC that is slow, and of the module that says so.
VERY_LATE_MS = 12_000


def cluster(seed: int, faults: NetworkFaults, late_ms: int = LATE_MS) -> World:
    """Nodes that should be on, with a gate each, and BMCs that are so slow."""
    manifests = [later(load(name).manifest(), late_ms) for name in ("jobs", "labnode")]
    world = World(seed, NODES, manifests, faults)
    for one in world.machines.values():
        one.late_ms = late_ms
    for name in NODES:
        world.propose(
            (
                Declare(node_id(name), {"platform": "labnode"}, "site"),
                SetDesired(node_id(name), "power", "on", "site"),
                SetDesired(node_id(name), "agent", "up", "site"),
            )
        )
    return world


def later(manifest: Manifest, late_ms: int) -> Manifest:
    """A module whose steps, where they take effect late, do so as late as that."""
    steps = [replace(one, late_ms=late_ms) if one.late_ms else one for one in manifest.steps]
    return replace(manifest, steps=steps)


def all_open(world: World, within_s: float) -> bool:
    machines = world.machines.values()
    end = world.clock.now + int(within_s * S)
    return world.clock.run_until(end, lambda: all(one.gate == "open" for one in machines))


def wish_off(world: World, name: str) -> None:
    node = node_id(name)
    world.propose((SetDesired(node, "power", "off", "site"), UnsetDesired(node, "agent")))


def wish_on(world: World, name: str) -> None:
    node = node_id(name)
    on = SetDesired(node, "power", "on", "site")
    world.propose((on, SetDesired(node, "agent", "up", "site")))


def known_at_the_parent(world: World, name: str) -> str | None:
    row = row_of(world.parent, node_id(name))
    fact = row.belief.known.get("busy")
    return None if fact is None else row.value("busy", fact)


def offs(machine: Machine) -> int:
    return sum(command.power == "off" for command in machine.commands)


def test_a_booted_node_lets_jobs_in_and_the_parent_knows_of_them_within_a_second() -> None:
    world = cluster(1, CALM)
    assert all_open(world, within_s=30)
    assert world.settle(10)

    for value, changes in (("busy", Machine.start_job), ("free", Machine.end_job)):
        changes(world.machines["n01"])
        world.run(1)
        assert known_at_the_parent(world, "n01") == value


def test_a_busy_node_is_switched_off_when_its_last_job_is_over() -> None:
    world = cluster(2, CALM)
    assert all_open(world, within_s=30)
    machine = world.machines["n01"]
    assert machine.start_job()
    assert machine.start_job()
    wish_off(world, "n01")
    world.run(120)
    machine.end_job()
    world.run(120)
    assert (machine.power, offs(machine)) == ("on", 0)

    machine.end_job()
    world.run(120)
    assert (machine.power, offs(machine), machine.killed) == ("off", 1, [])


def test_a_node_that_is_no_longer_to_be_switched_off_lets_jobs_in_again() -> None:
    world = cluster(3, CALM)
    assert all_open(world, within_s=30)
    machine = world.machines["n01"]
    assert machine.start_job()
    wish_off(world, "n01")
    world.run(20)
    wish_on(world, "n01")
    machine.end_job()

    assert all_open(world, within_s=OPENS_WITHIN_S)
    assert (machine.power, offs(machine)) == ("on", 0)


def test_a_parent_that_restarts_switches_no_busy_node_off() -> None:
    world = cluster(4, CALM)
    assert all_open(world, within_s=30)
    for name, machine in world.machines.items():
        assert machine.start_job()
        wish_off(world, name)
    for _ in range(5):
        world.crash(world.parent)
        world.run(30)

    assert [(one.power, offs(one)) for one in world.machines.values()] == [("on", 0)] * len(NODES)


@pytest.mark.parametrize("seed", range(5))
def test_a_node_that_enrolled_before_its_power_was_read_is_not_taken_for_one_that_has_not(
    seed: int,
) -> None:
    """A node that was booted and has not enrolled has no jobs; one that has enrolled may."""
    world = cluster(seed, CALM)
    for machine in world.machines.values():
        machine.trouble = Trouble(slow=1)
    assert all_open(world, within_s=120)
    for name, machine in world.machines.items():
        machine.trouble = Trouble()
        assert machine.start_job()
        wish_off(world, name)
    world.run(120)

    assert [offs(one) for one in world.machines.values()] == [0] * len(NODES)


def under_command(seed: int) -> tuple[World, Machine]:
    """A node told to switch off, by a BMC that is slower than a parent is lost; a job waits."""
    world = cluster(seed, CALM, VERY_LATE_MS)
    assert all_open(world, within_s=60)
    machine = world.machines["n01"]
    wish_off(world, machine.name)
    end = world.clock.now + TOLD_WITHIN_S * S
    assert world.clock.run_until(end, lambda: offs(machine) > 0)
    machine.trouble = Trouble(crowded=1)
    return world, machine


@pytest.mark.parametrize("seed", range(10))
def test_no_job_is_let_in_while_a_command_of_a_parent_that_was_lost_may_take_effect(
    seed: int,
) -> None:
    world, machine = under_command(seed)
    world.network.cut.add(frozenset((PARENT, machine.name)))
    world.run(60)

    assert (machine.power, machine.killed) == ("off", [])


@pytest.mark.parametrize("seed", range(10))
def test_a_node_that_was_reset_lets_no_job_in_while_a_command_may_take_effect(seed: int) -> None:
    world, machine = under_command(seed)
    machine.reset()
    world.run(60)

    assert (machine.power, machine.killed) == ("off", [])


class Workload:
    """Jobs come and go, nodes are wished off and on, processes die, power is lost: by seed."""

    def __init__(self, seed: int) -> None:
        self.world = cluster(seed, ROUGH)
        self.rng = self.world.clock.rng("workload")
        self.started = 0
        all_open(self.world, within_s=30)
        for machine in self.world.machines.values():
            machine.trouble = Trouble(
                *(self.rng.choice((0.0, self.rng.random() * 0.2)) for _ in range(5))
            )

    def unfold(self) -> None:
        for _ in range(ACTS):
            self.world.run(self.rng.random() * self.rng.choice((0.3, 3, 12)))
            self._happen(self.rng.choice(list(self.world.machines.values())))

    def calm_down(self) -> bool:
        """No fault, no job, and all nodes wished on: tells whether all come to let jobs in."""
        self.world.network.faults = CALM
        self.world.run(10)
        for name, machine in self.world.machines.items():
            machine.trouble = Trouble()
            wish_on(self.world, name)
            while machine.jobs:
                machine.end_job()
        return all_open(self.world, OPENS_WITHIN_S)

    def _happen(self, machine: Machine) -> None:
        world, agent = self.world, self.world.agents.get(machine.name)
        match self.rng.randrange(12):
            case 0 | 1 | 2 | 3:
                self.started += machine.start_job()
            case 4 | 5 if machine.jobs:
                machine.end_job()
            case 6 | 7 if world.parent.engine is not None:
                wish_off(world, machine.name)
            case 8 if world.parent.engine is not None:
                wish_on(world, machine.name)
            case 9 if agent is not None and agent.engine is not None:
                self.rng.choice((world.crash, lambda one: one.lose_module("jobs")))(agent)
            case 10 if world.parent.engine is not None:
                world.crash(world.parent)
            case 11 if self.rng.random() < 0.3:
                machine.cut()
            case _:
                pass


@pytest.mark.parametrize("seed", range(20))
def test_whatever_breaks_no_command_ends_a_job_and_jobs_are_let_in_again(seed: int) -> None:
    workload = Workload(seed)
    workload.unfold()
    calm = workload.calm_down()

    machines = workload.world.machines.values()
    assert [one for machine in machines for one in machine.killed if one.intent] == []
    assert calm, [(one.name, one.power, one.gate) for one in machines]
    assert workload.started > 0
    assert sum(map(offs, machines)) > 0


@pytest.mark.parametrize("busy_s", [20, 21, 22, 23, 24])
def test_a_permit_is_asked_for_again_as_soon_as_the_node_is_free(busy_s: int) -> None:
    world = cluster(3, CALM)
    assert all_open(world, within_s=30)
    assert world.settle(10)
    machine = world.machines["n01"]
    assert machine.start_job()
    wish_off(world, "n01")
    world.run(busy_s)
    assert offs(machine) == 0
    machine.end_job()
    world.run(2)
    assert offs(machine) == 1
