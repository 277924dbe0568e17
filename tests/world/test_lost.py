"""A silent node counts as lost, and is power-cycled where that is declared, until it is heard."""

from haptera.core.state.limits import S
from haptera.core.state.side import PARENT
from haptera.core.sync.peers import LEASE_FOR, LOST_AFTER, PROBE_EVERY, SUSPECT_AFTER
from haptera.core.sync.presence import BOOT_PATIENCE, BOOT_WITHIN_MS, LOST_PATIENCE
from haptera.core.views.query import view
from haptera.model.answers.views import EntityView
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from haptera.modules import load
from haptera.testing.network import NetworkFaults
from haptera.testing.world import World
from haptera.testing.world_process import HELLO_S
from tests.core.scenario import row_of

N1 = node_id("n1")

LATE_S = 2 * SUSPECT_AFTER * HELLO_S / 10
# How long a boot may take, and how long an agent that is lost is waited for.
BOOT_S = BOOT_PATIENCE * BOOT_WITHIN_MS / 1000
LOST_S = LOST_PATIENCE * BOOT_WITHIN_MS / 1000
# From when a heard agent has fallen silent until other parts may come first.
DOWN_S = LOST_AFTER * HELLO_S / 10 + LOST_S


def running(if_lost: str | None = None) -> World:
    """A node that is on and heard."""
    world = World(1, ["n1"], [load("labnode").manifest()], NetworkFaults())
    attributes = {"platform": "labnode"} | ({} if if_lost is None else {"if_lost": if_lost})
    world.propose(
        [
            Declare(N1, attributes, "site"),
            SetDesired(N1, "power", "on", "site"),
            SetDesired(N1, "agent", "up", "site"),
        ]
    )
    world.run(1)
    assert world.settle(60)
    return world


def panic(world: World) -> None:
    """The node's kernel is dead, and its power on."""
    world.agents.pop("n1").crash()


def commands(world: World) -> list[str]:
    """What the node's BMC was told since it was first switched on."""
    first, *later = [command.power for command in world.machines["n1"].commands]
    assert first == "on"
    return later


def told_of(world: World) -> EntityView:
    return view(row_of(world.parent, N1), world.clock.now)


def lost_ms(world: World) -> int | None:
    return told_of(world).lost_ms


def test_a_silent_node_is_lost_after_its_leases_are_over_and_until_it_is_heard() -> None:
    world = running()
    assert (lost_ms(world), told_of(world).suspect) == (None, False)

    world.network.cut.add(frozenset((PARENT, "n1")))
    world.run(LEASE_FOR * HELLO_S / 10)
    assert (lost_ms(world), told_of(world).suspect) == (None, True)
    world.run((LOST_AFTER - LEASE_FOR) * HELLO_S / 10 + 1)
    assert (lost_ms(world) is not None, told_of(world).suspect) == (True, False)

    world.network.cut.clear()
    world.run(3)
    assert (lost_ms(world), told_of(world).suspect) == (None, False)


def test_a_late_node_is_suspect_until_it_is_heard_or_cannot_be() -> None:
    world = running()
    world.network.cut.add(frozenset((PARENT, "n1")))
    world.run(LATE_S)
    assert told_of(world).suspect
    world.network.cut.clear()
    world.run(PROBE_EVERY * HELLO_S / 10)
    assert not told_of(world).suspect

    world.network.cut.add(frozenset((PARENT, "n1")))
    world.run(LATE_S)
    world.machines["n1"].cut()
    world.run(HELLO_S)
    assert (lost_ms(world), told_of(world).suspect) == (None, False)


def test_a_node_whose_kernel_panicked_is_power_cycled_where_that_is_declared() -> None:
    world = running(if_lost="recover")
    panic(world)
    world.run(DOWN_S - 2)
    assert commands(world) == []

    assert world.settle(30)
    assert commands(world) == ["off", "on"]


def test_a_node_whose_kernel_panicked_is_left_alone_where_nothing_is_declared() -> None:
    world = running()
    panic(world)
    world.run(900)
    assert commands(world) == []


def test_a_link_that_is_lost_for_a_minute_costs_no_machine_its_power() -> None:
    world = running(if_lost="recover")
    world.network.cut.add(frozenset((PARENT, "n1")))
    world.run(60)
    assert commands(world) == []

    world.network.cut.clear()
    assert world.settle(10)
    world.run(DOWN_S)
    assert commands(world) == []


def test_a_parent_that_starts_while_a_node_is_lost_knows_that_it_does_not_boot() -> None:
    world = running(if_lost="recover")
    world.run(BOOT_S)
    panic(world)
    world.crash(world.parent)
    world.run(LOST_S - 2)
    assert commands(world) == []

    assert world.settle(30)
    assert commands(world) == ["off", "on"]


def test_a_parent_whose_machine_has_just_started_gives_lost_nodes_the_time_of_a_boot() -> None:
    """Their power may have been cut with its own."""
    world = running(if_lost="recover")
    panic(world)
    world.crash(world.parent)
    world.run(BOOT_S - world.clock.now / S)
    assert commands(world) == []

    assert world.settle(DOWN_S + 60)
    assert commands(world) == ["off", "on"]


def test_a_parent_that_starts_while_a_node_boots_gives_it_the_time_of_a_boot() -> None:
    world = running(if_lost="recover")
    world.run(BOOT_S)
    world.machines["n1"].booted = lambda name: None  # it never comes up
    world.machines["n1"].cut()
    world.run(30)
    assert commands(world) == ["on"]

    world.crash(world.parent)
    world.run(BOOT_S - 10)
    assert commands(world) == ["on"]
    world.run(60)
    assert commands(world) == ["on", "off", "on"]


def test_a_standby_that_takes_over_gives_nodes_it_has_never_heard_the_time_of_a_boot() -> None:
    world = running(if_lost="recover")
    world.run(BOOT_S)
    panic(world)
    world.promote(world.parent.disk.copy())
    world.run(BOOT_S - 10)
    assert commands(world) == []

    assert world.settle(60)
    assert commands(world) == ["off", "on"]


def test_the_boot_after_a_panic_has_the_time_of_a_boot() -> None:
    world = running(if_lost="recover")
    machine = world.machines["n1"]
    machine.booted = lambda name: None  # it never comes up again
    panic(world)
    world.run(DOWN_S + 30)
    assert commands(world) == ["off", "on"]

    world.run(BOOT_PATIENCE * BOOT_WITHIN_MS / 1000 - 60)
    assert commands(world) == ["off", "on"]
    world.run(60)
    assert commands(world) == ["off", "on"] * 2
