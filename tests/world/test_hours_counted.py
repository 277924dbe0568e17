"""Steps that count in a node's hour, by what really became of them."""

from haptera.model.changes import Declare, SetDesired, UnsetDesired
from haptera.model.entity import node_id
from haptera.model.events import Asked
from haptera.testing.machine import Machine, Trouble
from haptera.testing.world import World
from tests.world.evidence import gather
from tests.world.harm import AN_HOUR_MAX, budgets_hold
from tests.world.history import CALM, cluster

N01 = node_id("n01")


def switched_off(trouble: Trouble, *, restores: bool = False) -> World:
    """A node that should be off, for half an hour in which each wait is cut short by a person."""
    world = cluster(3, CALM)
    assert world.settle(30)
    world.machines["n01"].trouble = trouble
    if restores:
        _restored(world, world.machines["n01"])
    freed = Declare(N01, {"platform": "labnode", "jobs": "none"}, "site")
    world.propose([freed, SetDesired(N01, "power", "off", "site"), UnsetDesired(N01, "agent")])
    for _ in range(30):
        world.run(60)
        world.parent.deliver([Asked(N01)])
    return world


def _restored(world: World, machine: Machine) -> None:
    """Have a machine get its power again at once, whoever took it."""
    told = machine.stopped

    def stopped(name: str) -> None:
        told(name)
        world.clock.after(0, machine.start_up)

    machine.stopped = stopped


def test_commands_that_a_bmc_never_carries_out_leave_room_for_the_one_that_it_does() -> None:
    """Also at a parent that was killed meanwhile."""
    world = switched_off(Trouble(idle=1.0))
    machine = world.machines["n01"]
    assert len([one for one in machine.commands if one.power == "off"]) > AN_HOUR_MAX
    world.crash(world.parent)
    world.run(30)
    machine.trouble = Trouble()
    world.parent.deliver([Asked(N01)])
    world.run(60)
    assert machine.power == "off"


def test_a_node_that_has_its_power_again_at_once_is_disturbed_three_times_an_hour_at_most() -> None:
    world = switched_off(Trouble(), restores=True)
    taken = [one for one in world.machines["n01"].commands if one.power == "off"]
    assert len(taken) == AN_HOUR_MAX
    budgets_hold(gather(world, [*world.catalog.manifests.values()], []))
