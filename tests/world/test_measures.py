"""What parts take on nodes is known to their parent, whatever the network loses."""

from haptera.core.state.limits import MS, S
from haptera.model.answers.plan import PlanGroup
from haptera.model.changes import SetDesired
from haptera.model.effects import PlanReply
from haptera.model.events import Considered
from haptera.testing.world import World
from tests.world.history import CALM, NODES, ROUGH, cluster, settled, web


def planned(world: World) -> PlanGroup:
    """What would come of other settings for all services."""
    engine = world.parent.engine
    assert engine is not None
    changes = tuple(SetDesired(web(name), "port", 8081, "site") for name in NODES)
    effects = engine.handle([Considered(99, changes)], world.clock.now)
    (plan,) = (one.plan for one in effects if isinstance(one, PlanReply))
    assert plan is not None
    (group,) = plan.groups
    return group


def test_a_plan_tells_how_long_what_runs_on_nodes_usually_takes() -> None:
    world = settled(cluster(5, ROUGH), 120)
    parts = [link.part for link in planned(world).chain]
    assert parts == ["service.replace", "service.look_applied"]
    assert planned(world).unmeasured == ["service.replace"]  # None was replaced yet.
    world.propose([SetDesired(web("n01"), "port", 8082, "site")])
    world.run(10)
    assert world.settle(120)
    agent = world.agents["n01"].engine
    assert agent is not None
    took_ns = agent.neighbours.usual.of("service.replace")
    assert took_ns is not None
    assert planned(world).unmeasured == []
    assert planned(world).usual_ms >= took_ns // MS


def test_a_boot_late_in_the_life_of_a_parent_takes_as_long_as_one_at_its_beginning() -> None:
    world = settled(cluster(1, CALM), 60)
    world.run(600)
    for machine in world.machines.values():
        machine.cut()
    world.run(10)
    assert world.settle(120)
    assert world.parent.engine is not None
    boot_ns = world.parent.engine.neighbours.usual.of("sync.hear")
    assert boot_ns is not None
    assert boot_ns < 60 * S
