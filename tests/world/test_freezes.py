"""Freezes in simulated clusters: both sides obey them, over restarts, cuts and their ends."""

from haptera.core.state.limits import S
from haptera.model.answers.views import Condition
from haptera.model.changes import Declare, SetDesired, Undeclare, UnsetDesired
from haptera.model.entity import EntityId, node_id
from haptera.testing.world import World
from tests.core.scenario import row_of, standing
from tests.world.history import CALM, NODES, cluster, settled, web

FREEZE = EntityId("freeze", "f1", None)


def freeze(world: World, of: str, until_s: int | None = None) -> None:
    values: dict[str, str | int] = {"of": of, "reason": "board swap"}
    values |= {} if until_s is None else {"until_s": until_s}
    sets = [SetDesired(FREEZE, name, value, "user:eve") for name, value in values.items()]
    world.propose([Declare(FREEZE, {}, "user:eve"), *sets])


def running(world: World) -> list[str]:
    return [name for name, machine in world.machines.items() if "web" in machine.services]


def commands(world: World) -> list[int]:
    return [len(machine.commands) for machine in world.machines.values()]


def tried(world: World, node: str) -> list[str]:
    return [one.outcome for one in row_of(world.parent, node_id(node)).attempts.tried]


def test_what_was_meant_is_not_begun_and_what_was_begun_is_read_to_its_end() -> None:
    world = settled(cluster(1, CALM), 30)
    for name in ("n01", "n02"):
        world.machines[name].cut()
    assert world.clock.run_until(world.clock.now + 9 * S, lambda: commands(world) == [2, 2, 1, 1])
    freeze(world, "*")
    for name in ("n03", "n04"):
        world.machines[name].cut()  # seen before the freeze is durable, and so meant
    world.run(30)
    assert commands(world) == [2, 2, 1, 1]
    assert [tried(world, name)[-1] for name in NODES] == ["done"] * 2 + ["not started: frozen"] * 2
    assert not world.parent.disk.intents
    assert standing(world.parent, node_id("n03")) == (
        Condition.WAITING, "frozen by user:eve: board swap",
    )  # fmt: skip

    world.propose([Undeclare(FREEZE)])
    assert world.settle(30)
    assert running(world) == list(NODES)


def test_an_agent_begins_no_step_on_what_is_frozen_and_others_go_on() -> None:
    world = settled(cluster(2, CALM), 30)
    freeze(world, "service:web@n[01-02]")
    world.run(1)
    for machine in world.machines.values():
        machine.services.clear()
    world.run(30)
    assert running(world) == ["n03", "n04"]
    assert standing(world.parent, web("n01")) == (
        Condition.WAITING, "frozen by user:eve: board swap",
    )  # fmt: skip

    world.propose([SetDesired(FREEZE, "of", "service:web@n02", "user:bob")])
    world.run(15)
    assert running(world) == ["n01", "n03", "n04"]


def test_what_is_frozen_stays_so_over_restarts_of_both_sides() -> None:
    world = settled(cluster(3, CALM), 30)
    freeze(world, "n01")
    world.run(1)
    world.crash(world.parent)
    world.run(0.1)
    world.crash(world.agents["n01"])
    world.network.cut = {frozenset(("parent", name)) for name in NODES}
    world.machines["n01"].services.clear()
    world.machines["n02"].services.clear()
    world.run(30)
    assert running(world) == ["n02", "n03", "n04"]

    world.network.cut = set()
    world.run(10)
    assert standing(world.parent, web("n01")) == (
        Condition.WAITING, "frozen by user:eve: board swap",
    )  # fmt: skip


def test_a_node_that_is_cut_off_goes_on_when_the_time_of_its_freeze_has_come() -> None:
    world = settled(cluster(4, CALM), 30)
    freeze(world, "n01", until_s=world.wall_s() + 60)
    world.run(1)
    world.network.cut = {frozenset(("parent", name)) for name in NODES}
    world.machines["n01"].services.clear()
    world.run(50)
    assert "n01" not in running(world)
    world.run(20)
    assert "n01" in running(world)


def test_a_freeze_whose_time_has_come_is_gone_from_every_store() -> None:
    world = settled(cluster(5, CALM), 30)
    freeze(world, "n01", until_s=world.wall_s() + 20)
    world.run(10)
    held = [FREEZE in disk.entities for disk in world.disks]
    world.run(20)

    assert held == [True] * len(world.disks)
    assert [FREEZE in disk.entities for disk in world.disks] == [False] * len(world.disks)


def test_a_freeze_whose_end_is_taken_away_does_not_end() -> None:
    world = settled(cluster(6, CALM), 30)
    freeze(world, "n01", until_s=world.wall_s() + 20)
    world.run(10)
    world.propose([UnsetDesired(FREEZE, "until_s")])
    world.run(20)

    assert FREEZE in world.parent.disk.entities
