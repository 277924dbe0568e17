"""What the simulated faults share: a cluster at rest, and what was done to its machines."""

from haptera.core.rows.row import Row
from haptera.model.entity import EntityId
from haptera.testing.world import Process, World
from tests.world.history import CALM, cluster

SETTLE_S = 30


def at_rest(seed: int) -> World:
    """Four nodes that are on, each with a service that runs; nothing is under way."""
    world = cluster(seed, CALM)
    assert world.settle(SETTLE_S)
    world.run(5)
    return world


def row_of(process: Process, entity: EntityId) -> Row:
    """The entity as this process sees it."""
    assert process.engine is not None
    row = process.engine.table.get(entity)
    assert row is not None, entity
    return row


def deeds(world: World) -> list[tuple[int, int]]:
    """Of each machine: how many power commands it got, and how many starts of services."""
    return [(len(one.commands), len(one.starts)) for one in world.machines.values()]


def link_of(node: str) -> frozenset[str]:
    """The pair that `World.network.cut` names to keep this node from its parent."""
    return frozenset(("parent", node))
