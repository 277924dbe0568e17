"""Budgets hold over a whole tree: parents ask the one above for room, as agents ask them."""

import pytest

from haptera.core.state.limits import S
from haptera.model.events import Proposed
from haptera.testing.world import World
from tests.world.history import CALM, NODES, settled
from tests.world.test_room import BUDGETS, Upheaval, at_once, cluster, image, outages, system, why

TICKET = 1 << 50
# Three levels: the last of the nodes is the root's own.
PARENTS = {
    "m1": ("t1",),
    "m2": ("t1",),
    "n01": ("m1", "m2"),
    "n02": ("m1", "m2"),
    "n03": ("m2", "m1"),
}


def roll(world: World, number: int) -> None:
    for name in NODES:
        world.propose(image(name, number))
    world.run(1)


def test_no_more_systems_are_replaced_at_once_in_the_tree_than_the_roots_budget_allows() -> None:
    world = settled(cluster(1, CALM, PARENTS), 120)
    roll(world, 2)
    assert world.settle(120)

    assert sorted(one.system for one in outages(world)) == [str(system(name)) for name in NODES]
    assert max(at_once(outages(world))) == BUDGETS["parent"]


def test_a_subtree_that_is_cut_off_replaces_nothing_and_its_nodes_say_why() -> None:
    world = settled(cluster(2, CALM, PARENTS), 120)
    world.network.cut.add(frozenset(("t1", "parent")))
    for parent in ("t1", "m1"):
        # What is desired does not come down either: it is asked of the parents below themselves.
        world.below[parent].deliver([Proposed(TICKET, image("n01", 2))])
    world.run(60)

    assert outages(world) == []
    assert why(world, "n01") == (
        "system.flip waits: above: the parent above is silent,"
        " and only it knows what is disrupted elsewhere"
    )


def test_the_place_of_a_subtree_that_is_gone_is_lent_again_and_no_sooner_than_it_can_be_used() -> (
    None
):
    world = settled(cluster(3, CALM, PARENTS), 120)
    for name in ("n01", "n03"):
        world.propose(image(name, 2))
    assert world.clock.run_until(world.clock.now + 30 * S, lambda: len(outages(world)) == 2)
    world.network.cut.add(frozenset(("t1", "parent")))
    world.propose(image("n04", 2))
    world.run(8)
    assert len(outages(world)) == 2
    world.run(300)
    assert len(outages(world)) == 3


def test_a_root_that_was_just_started_lends_nothing_before_parents_below_said_what_they_do() -> (
    None
):
    world = settled(cluster(4, CALM, PARENTS), 120)
    for name in ("n01", "n03"):
        world.propose(image(name, 2))
    assert world.clock.run_until(world.clock.now + 30 * S, lambda: len(outages(world)) == 2)
    world.network.cut.add(frozenset(("t1", "parent")))
    world.crash(world.parent)
    world.run(5)
    world.propose(image("n04", 2))
    world.run(30)
    assert len(outages(world)) == 2
    assert why(world, "n04") == (
        "system.flip waits: this parent was just started, and t1 has not reported what it does"
    )
    world.run(60)
    assert len(outages(world)) == 3


@pytest.mark.parametrize("seed", range(1, 3))
def test_whatever_breaks_in_a_tree_no_more_systems_are_away_at_once_than_the_budget_allows(
    seed: int,
) -> None:
    upheaval = Upheaval(seed, PARENTS)
    upheaval.unfold()
    calm = upheaval.calm_down()

    found = outages(upheaval.world)
    assert max(at_once(found)) <= BUDGETS["parent"]
    assert calm, [(name, why(upheaval.world, name)) for name in NODES]
    assert len(found) > len(NODES)
