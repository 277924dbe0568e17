"""Clusters whose BMCs and agents contradict each other."""

from haptera.core.views.query import view
from haptera.model.answers.views import Condition
from haptera.model.entity import node_id
from haptera.testing.world import World
from tests.core.scenario import row_of
from tests.world.history import CALM, cluster, settled


def standing(world: World, name: str) -> tuple[Condition, str | None]:
    shown = view(row_of(world.parent, node_id(name)), world.clock.now)
    return shown.condition, shown.why


def test_a_bmc_that_says_off_of_a_machine_that_answers_is_not_acted_on_until_it_comes_to_reason() -> (  # noqa: E501
    None
):
    world = settled(cluster(11, CALM), 30)
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
        world = settled(cluster(seed, CALM), 30)
        world.network.faults.late = 0.5
        world.run(seed / 4)
        world.machines["n02"].cut()
        world.run(10)
        assert world.machines["n02"].power == "on"
        world.network.faults.late = 0.0
