"""A parent below another, by its links alone: desired state flows down two levels, pictures up."""

from collections.abc import Mapping

import msgspec
import pytest

from haptera.core.engine import Engine
from haptera.core.state.side import below
from haptera.model.changes import Change, Declare, SetDesired, Undeclare
from haptera.model.effects import Call, Work
from haptera.model.entity import EntityId, node_id
from haptera.model.facts import Method
from haptera.model.messages import Message, ObservedUpdate, SeenValue
from haptera.model.views import Condition
from haptera.modules import load
from haptera.testing.network import NetworkFaults
from haptera.testing.world import World, WorldProcess
from tests.world.history import CALM, ROUGH, web

KEPT = {"n01": "m1", "n02": "m1", "n03": "m2"}
NODES = (*KEPT, "n04")  # the last one is the root's own
STEPS = 12


def tree(seed: int, faults: NetworkFaults) -> World:
    """A root, two parents below it, and nodes that should be on, each with a service."""
    manifests = [load(name).manifest() for name in ("labnode", "service")]
    world = World(seed, NODES, manifests, faults, kept=KEPT)
    for name in NODES:
        world.propose(wished(name))
    world.run(1)
    return world


def wished(name: str) -> tuple[Change, ...]:
    parents = {"parents": KEPT[name]} if name in KEPT else {}
    return (
        Declare(node_id(name), {"platform": "labnode", **parents}, "site"),
        SetDesired(node_id(name), "power", "on", "site"),
        SetDesired(node_id(name), "agent", "up", "site"),
        Declare(web(name), {}, "site"),
        SetDesired(web(name), "run", "running", "site"),
        SetDesired(web(name), "command", "web", "site"),
    )


def engine(process: WorldProcess) -> Engine:
    assert process.engine is not None
    return process.engine


def picture(process: WorldProcess, node: str) -> Mapping[EntityId, object]:
    """All that is known of a node, and where what is on it stands."""
    return {
        row.id: (
            {name: fact.value for name, fact in row.belief.known.items()},
            row.stance.condition,
            row.stance.why,
        )
        for row in engine(process).table.on(node)
    }


def wishes(process: WorldProcess, node: str) -> Mapping[EntityId, object]:
    return {
        row.id: (
            {name: one.value for name, one in row.desired.values.items()},
            row.desired.attributes,
        )
        for row in engine(process).table.on(node)
    }


def switched_by(world: World, node: str) -> set[str]:
    """The processes that took steps on a node."""
    calls = ((one.process, one.what) for one in world.tape if isinstance(one.what, Call))
    return {who for who, one in calls if one.work is Work.STEP and one.entity == node_id(node)}


def check_tree(world: World) -> None:
    for name in NODES:
        keeper = world.keeper(name)
        assert wishes(keeper, name) == wishes(world.parent, name)
        assert wishes(world.agents[name], name) == wishes(world.parent, name)
        assert picture(keeper, name) == picture(world.parent, name)
        assert world.machines[name].power == "on"
        assert "web" in world.machines[name].services
        assert switched_by(world, name) == {keeper.name}


def test_what_is_desired_flows_down_two_levels_and_what_is_seen_up() -> None:
    world = tree(1, CALM)
    assert world.settle(60)
    world.run(3)
    check_tree(world)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_breaks_in_a_tree_all_ends_as_desired(seed: int) -> None:
    world = tree(seed, ROUGH)
    rng = world.clock.rng("history")
    for port in range(8000, 8000 + STEPS):
        world.run(rng.random() * 3)
        some = [world.parent, *world.below.values(), *world.agents.values()]
        victim = rng.choice(some)
        match rng.randrange(4):
            case 0 if victim.engine is not None:
                world.crash(victim)
            case 1:
                victim.pause(rng.random() * 5)
            case 2:
                world.machines[rng.choice(NODES)].cut()
            case _ if world.parent.engine is not None:
                world.propose([SetDesired(web(rng.choice(NODES)), "port", port, "site")])
            case _:
                pass
    world.network.faults = CALM
    world.run(15)
    assert world.settle(90)
    world.run(3)
    check_tree(world)


def test_a_parent_below_goes_on_without_the_one_above() -> None:
    world = tree(2, CALM)
    assert world.settle(60)
    world.parent.crash()
    world.machines["n01"].cut()
    world.crash(world.below[below("m1")])
    world.run(60)
    assert world.machines["n01"].power == "on"
    assert "web" in world.machines["n01"].services
    world.parent.start()
    assert world.settle(60)
    world.run(3)
    check_tree(world)


def test_one_that_lost_all_that_it_knew_ends_nothing_before_it_is_told_all_again() -> None:
    world = tree(3, CALM)
    assert world.settle(60)
    running = {name: dict(world.machines[name].services) for name in KEPT}
    middle = world.below[below("m1")]
    world.parent.says = of_nodes_only
    middle.disk.lose()
    world.crash(middle)
    world.run(20)
    assert engine(middle).table.get(node_id("n01")) is not None
    assert {name: dict(world.machines[name].services) for name in KEPT} == running
    world.parent.says = None
    assert world.settle(60)
    world.run(3)
    check_tree(world)
    assert {name: dict(world.machines[name].services) for name in KEPT} == running


def of_nodes_only(message: Message) -> Message:
    """What is left of a message whose other datagrams were lost."""
    updates = tuple(one for one in message.updates if one.entity.kind == "node")
    return msgspec.structs.replace(message, updates=updates)


def test_what_is_no_longer_declared_at_the_root_ends_on_the_node_two_levels_below() -> None:
    world = tree(4, CALM)
    assert world.settle(60)
    world.propose([Undeclare(web("n01"))])
    assert world.settle(60)
    world.run(5)
    assert "web" not in world.machines["n01"].services
    assert "web" in world.machines["n02"].services
    for process in (world.parent, world.keeper("n01"), world.agents["n01"]):
        assert engine(process).table.get(web("n01")) is None


def test_what_a_parent_below_no_longer_tells_is_remembered() -> None:
    world = tree(5, CALM)
    assert world.settle(60)
    world.below[below("m1")].crash()
    world.run(10)
    row = engine(world.parent).table.get(node_id("n01"))
    assert row is not None
    assert row.belief.known == {}
    assert row.belief.remembered["power"].value == "on"
    assert (row.stance.condition, row.stance.why) == (Condition.WAITING, "is kept by m1")


def test_a_parent_below_is_not_believed_about_nodes_of_others() -> None:
    world = tree(6, CALM)
    assert world.settle(60)
    seen = SeenValue("off", True, Method.READ, 0, "liar")
    lie = ObservedUpdate(node_id("n01"), 99, {"power": seen})
    world.below[below("m2")].says = lambda said: msgspec.structs.replace(said, updates=(lie,))
    world.run(5)
    assert engine(world.parent).neighbours.refused.keys() == {below("m2")}
    world.below[below("m2")].says = None
    world.run(5)
    check_tree(world)
