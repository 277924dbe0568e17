"""Three levels of parents: desired state flows down, pictures up; nodes and parents move."""

from collections.abc import Mapping

import pytest

from haptera.core.engine import Engine
from haptera.core.state.limits import S
from haptera.core.views.query import summary
from haptera.model.answers.views import Condition
from haptera.model.changes import Change, Declare, SetDesired, Undeclare
from haptera.model.effects import Call, Work
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Reported
from haptera.model.facts import Method
from haptera.model.messages import ObservedUpdate, SeenValue
from haptera.modules import load
from haptera.planner.domain.pieces import at_once
from haptera.testing.network import NetworkFaults
from haptera.testing.world import World
from haptera.testing.world_process import WorldProcess
from tests.core.scenario import row_of
from tests.world.history import CALM, ROUGH, settled, web

PARENTS = {
    "m1": ("t1", "t2"),
    "m2": ("t2", "t1"),
    "n01": ("m1", "m2"),
    "n02": ("m1", "m2"),
    "n03": ("m2", "m1"),
    "n04": ("m2", "m1"),
}
NODES = ("n01", "n02", "n03", "n04", "n05")  # the last one is the root's own
STEPS = 12


def tree(seed: int, faults: NetworkFaults) -> World:
    """A root, two parents below it, two below these, and nodes that each have a service."""
    manifests = [load(name).manifest() for name in ("labnode", "service")]
    world = World(seed, NODES, manifests, faults, parents=PARENTS)
    world.propose(
        Declare(node_id(name), {"parents": ", ".join(PARENTS[name])}, "site")
        for name in ("m1", "m2")
    )
    for name in NODES:
        world.propose(wished(name))
    world.run(1)
    return world


def wished(name: str) -> tuple[Change, ...]:
    parents = {"parents": ", ".join(PARENTS[name])} if name in PARENTS else {}
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
            {name: (fact.value, fact.note) for name, fact in row.belief.known.items()},
            row.stance.condition,
            row.stance.why,
        )
        for row in engine(process).table.on(node)
    }


def noted(process: WorldProcess, node: str) -> str | None:
    """What the node's look noted of what is in force there."""
    return row_of(process, web(node)).belief.known["applied"].note


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
    """All hold what is desired, the root sees what the keeper sees, and that is so."""
    for name in NODES:
        keeper = world.keeper(name)
        above = [world.below[one] for one in PARENTS.get(keeper.name, ())]
        for process in (keeper, *above, world.agents[name]):
            assert wishes(process, name) == wishes(world.parent, name), process.name
        assert picture(keeper, name) == picture(world.parent, name)
        assert noted(world.parent, name) == f"in force on {name}"
        assert world.machines[name].power == "on"
        assert "web" in world.machines[name].services


def running(world: World) -> Mapping[str, object]:
    return {name: dict(world.machines[name].services) for name in NODES}


def known(process: WorldProcess, node: str) -> dict[str, str]:
    return {name: fact.value for name, fact in row_of(process, node_id(node)).belief.known.items()}


def test_what_is_desired_flows_down_three_levels_and_what_is_seen_up() -> None:
    world = settled(tree(1, CALM), 60)
    world.run(3)
    check_tree(world)
    assert {name: switched_by(world, name) for name in NODES} == {
        name: {world.keeper(name).name} for name in NODES
    }
    near = engine(world.parent).neighbours
    assert near.reports is not None
    told = at_once(summary(engine(world.parent).table, near.reports.subtree)).subtrees
    assert {parent: told[parent]["service"] for parent in told} == {
        "t1": {"converged": 2},
        "t2": {"converged": 2},
    }
    for process in world.below.values():
        nodes = {row.id.name for row in engine(process).table if row.id.kind == "node"}
        assert nodes.isdisjoint({"n05"}), process.name


@pytest.mark.parametrize("seed", range(8))
def test_whatever_breaks_in_a_tree_all_ends_as_desired(seed: int) -> None:
    world = tree(seed, ROUGH)
    rng = world.clock.rng("history")
    for port in range(8000, 8000 + STEPS):
        world.run(rng.random() * 3)
        some = [world.parent, *world.below.values(), *world.agents.values()]
        victim, other = rng.choice(some), rng.choice(some)
        match rng.randrange(5):
            case 0 if victim.engine is not None:
                world.crash(victim)
            case 1:
                victim.pause(rng.random() * 8)
            case 2:
                world.machines[rng.choice(NODES)].cut()
            case 3:
                pair = frozenset((victim.name, other.name))
                world.network.cut.add(pair)
                world.clock.after(int(rng.random() * 12 * S), world.network.cut.discard, pair)
            case _ if world.parent.engine is not None:
                world.propose([SetDesired(web(rng.choice(NODES)), "port", port, "site")])
            case _:
                pass
    world.network.faults = CALM
    world.run(20)
    assert world.settle(90)
    world.run(6)
    check_tree(world)


def test_a_subtree_goes_on_without_what_is_above_and_moves_on() -> None:
    world = settled(tree(2, CALM), 60)
    world.below["t1"].crash()
    world.run(8)
    world.propose([SetDesired(web("n01"), "port", 8001, "site")])
    assert world.settle(30)
    world.run(3)
    assert row_of(world.agents["n01"], web("n01")).desired.values["port"].value == 8001, "by t2"
    world.parent.crash()
    world.below["t2"].crash()
    world.machines["n01"].cut()
    world.run(60)
    assert world.machines["n01"].power == "on"
    assert "web" in world.machines["n01"].services
    for process in (world.parent, world.below["t1"], world.below["t2"]):
        process.start()
    assert world.settle(60)
    world.run(6)
    check_tree(world)


def test_what_is_declared_anew_is_shown_as_its_parent_last_told_of_it() -> None:
    world = settled(tree(4, CALM), 60)
    world.run(3)
    world.propose([Undeclare(web("n01")), Undeclare(node_id("n01"))])
    world.propose(wished("n01"))
    world.run(3)
    check_tree(world)


def test_of_what_is_gone_below_nothing_is_known_when_it_is_declared_anew() -> None:
    world = settled(tree(5, CALM), 60)
    world.propose([Undeclare(web("n01"))])
    world.run(3)
    world.network.cut.update(frozenset(("parent", name)) for name in ("t1", "t2"))
    world.propose(wished("n01"))
    world.run(1)
    row = row_of(world.parent, web("n01"))
    assert (row.belief.known, row.belief.remembered) == ({}, {})
    world.network.cut.clear()
    assert world.settle(60)
    world.run(3)
    check_tree(world)


def test_nodes_move_to_the_next_parent_and_back_and_no_service_ends() -> None:
    world = settled(tree(3, CALM), 60)
    before = running(world)
    world.below["m1"].crash()
    world.run(12)
    assert world.agents["n01"].above == "m2"
    assert known(world.parent, "n01") == {"power": "on", "agent": "up"}
    world.propose([SetDesired(web("n05"), "port", 8001, "site")])
    assert world.settle(60), "the root sees by t2 what m2 keeps"
    world.below["m1"].start()
    world.run(15)
    assert world.agents["n01"].above == "m1"
    assert world.settle(60)
    world.run(6)
    check_tree(world)
    after = running(world)
    assert {name: after[name] for name in PARENTS if name in NODES} == {
        name: before[name] for name in PARENTS if name in NODES
    }


def test_a_parent_that_lost_its_state_file_ends_nothing() -> None:
    world = settled(tree(4, CALM), 60)
    before = running(world)
    world.below["m1"].disk.lose()
    world.crash(world.below["m1"])
    world.run(20)
    assert world.settle(60)
    world.run(6)
    check_tree(world)
    assert running(world) == before


def test_what_is_no_longer_declared_at_the_root_ends_on_the_node_three_levels_below() -> None:
    world = settled(tree(5, CALM), 60)
    world.propose([Undeclare(web("n01"))])
    assert world.settle(60)
    world.run(5)
    assert "web" not in world.machines["n01"].services
    assert "web" in world.machines["n02"].services
    for process in (world.parent, *world.below.values(), world.agents["n01"]):
        assert engine(process).table.get(web("n01")) is None


def test_what_is_no_longer_told_is_remembered_at_every_level() -> None:
    world = settled(tree(6, CALM), 60)
    for name in ("m1", "m2"):
        world.below[name].crash()
    world.run(12)
    for process in (world.parent, world.below["t1"]):
        row = row_of(process, node_id("n01"))
        assert row.belief.known == {}
        assert row.belief.remembered["power"].value == "on"
        assert (row.stance.condition, row.stance.why) == (Condition.WAITING, "is kept by m1")


def test_a_parent_below_is_not_believed_about_nodes_of_others() -> None:
    world = settled(tree(7, CALM), 60)
    seen = SeenValue("off", True, Method.READ, 0, "liar")
    lie = ObservedUpdate(node_id("n05"), 99, {"power": seen})
    world.parent.deliver([Reported("t2", (lie,), None, world.clock.now)])
    reports = engine(world.parent).neighbours.reports
    assert reports is not None
    assert reports.refused == {"t2": 1}
    world.run(6)
    check_tree(world)
