"""Clusters whose BMCs and agents contradict each other."""

from haptera.core.views.query import view
from haptera.model.answers.views import Condition
from haptera.model.entity import node_id
from haptera.testing.world import World
from tests.world.history import CALM, cluster


def standing(world: World, name: str) -> tuple[Condition, str | None]:
    engine = world.parent.engine
    assert engine is not None
    row = engine.table.get(node_id(name))
    assert row is not None
    shown = view(row, world.clock.now)
    return shown.condition, shown.why


def test_a_bmc_that_says_off_of_a_machine_that_answers_is_not_acted_on_until_it_comes_to_reason() -> (  # noqa: E501
    None
):
    world = cluster(11, CALM)
    assert world.settle(30)
    machine = world.machines["n01"]
    machine.trouble.lying = 1.0
    world.run(600)

    why = "contested: sync.hear says agent up, labnode.look_power says power off"
    assert standing(world, "n01") == (Condition.STUCK, why)
    # Only what was begun before the agent's next hello: power on, of a machine that has it.
    assert [command.power for command in machine.commands[1:]] in ([], ["on"])
    assert "web" in machine.services
    machine.trouble.lying = 0.0
    assert world.settle(30)


def test_a_machine_whose_power_is_cut_is_soon_switched_on_again_though_its_hellos_came_late() -> (
    None
):
    for seed in range(12, 18):
        world = cluster(seed, CALM)
        assert world.settle(30)
        world.network.faults.late = 0.5
        world.run(seed / 4)
        world.machines["n02"].cut()
        world.run(10)
        assert world.machines["n02"].power == "on"
        world.network.faults.late = 0.0
