"""A person asks the parent for another try, and the agent whose module it is tries at once."""

from haptera.core.modules.supervise import Supervisor
from haptera.model.entity import EntityId
from haptera.model.events import Asked
from haptera.testing.world import World
from tests.world.history import CALM, cluster, settled

MODULE = EntityId("module", "service", "n01")


def supervisor(world: World) -> Supervisor:
    engine = world.agents["n01"].engine
    assert engine is not None
    return engine.hands.supervisor


def test_a_module_of_a_node_that_was_left_alone_is_started_when_the_parent_is_asked() -> None:
    world = settled(cluster(3, CALM), 30)
    while not supervisor(world).failed("service"):
        world.agents["n01"].lose_module("service")
        world.run(5)
    world.machines["n01"].services.clear()
    world.run(30)
    assert supervisor(world).failed("service")

    world.parent.deliver([Asked(MODULE)])
    world.run(1)
    assert supervisor(world).ready("service")
    assert world.settle(10)
    assert list(world.machines["n01"].services) == ["web"]
