"""What the simulated faults share: a cluster at rest, and what was done to its machines."""

from haptera.model.changes import Declare, SetDesired, Undeclare
from haptera.model.entity import EntityId
from haptera.testing.world import World
from tests.world.history import CALM, cluster, settled

SETTLE_S = 30
FREEZE = EntityId("freeze", "f1", None)


def at_rest(seed: int) -> World:
    """Four nodes that are on, each with a service that runs; nothing is under way."""
    world = settled(cluster(seed, CALM), SETTLE_S)
    world.run(5)
    return world


def deeds(world: World) -> list[tuple[int, int]]:
    """Of each machine: how many power commands it got, and how many starts of services."""
    return [(len(one.commands), len(one.starts)) for one in world.machines.values()]


def link_of(node: str) -> frozenset[str]:
    """The pair that `World.network.cut` names to keep this node from its parent."""
    return frozenset(("parent", node))


def freeze(world: World) -> None:
    """Keep hands off everything, until `thaw`."""
    world.propose(
        (
            Declare(FREEZE, {}, "user:eva"),
            SetDesired(FREEZE, "of", "*", "user:eva"),
            SetDesired(FREEZE, "reason", "to see", "user:eva"),
        )
    )
    world.run(0.2)


def thaw(world: World) -> None:
    world.propose((Undeclare(FREEZE),))
    world.run(0.2)
