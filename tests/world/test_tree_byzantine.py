"""A node of a tree that lies with its own key: no level believes it about others."""

from collections.abc import Mapping

import msgspec
import pytest

from haptera.core.views.query import view
from haptera.model.answers.views import Condition, EntityView
from haptera.model.entity import EntityId, node_id
from haptera.model.facts import Method
from haptera.model.messages import Message, ObservedUpdate, RoomAsk, SeenValue, Standing
from haptera.testing.world import World
from tests.world.history import CALM, ROUGH, settled, web
from tests.world.test_room import BUDGETS, ROOT_ALONE, cluster, image, outages, system
from tests.world.test_room import NODES as ROOM_NODES
from tests.world.test_tree import NODES, check_tree, tree
from tests.world.test_tree_room import PARENTS

LIAR, OTHERS = NODES[0], NODES[1:]
LIE = "the disk burns"
FAR = 1 << 62


def lies(message: Message) -> Message:
    """Words on all nodes, as if they were its own."""
    told = [forged(entity) for name in NODES for entity in (web(name), node_id(name))]
    return msgspec.structs.replace(message, updates=(*message.updates, *told))


def forged(entity: EntityId) -> ObservedUpdate:
    names = {"run": "failed", "busy": "busy", "agent": "up", "power": "off"}
    seen = {name: SeenValue(one, True, Method.READ, 0, "sync") for name, one in names.items()}
    return ObservedUpdate(entity, FAR, seen, standing=Standing(Condition.STUCK, 0, LIE))


def told_of_others(world: World) -> list[EntityView]:
    """What the parents of all levels tell people of the other nodes."""
    engines = [one.engine for one in (world.parent, *world.below.values()) if one.awake]
    return [
        view(row, world.clock.now)
        for engine in engines
        if engine is not None
        for row in engine.table
        if row.id.node in OTHERS
    ]


@pytest.mark.parametrize("seed", range(3))
def test_a_node_that_lies_changes_what_no_level_knows_of_the_others(seed: int) -> None:
    world = settled(tree(seed, CALM), 60)
    world.network.faults = ROUGH
    world.agents[LIAR].says = lies
    told: list[EntityView] = []
    for victim in (world.below["m1"], world.below["t1"], world.parent, world.below["m2"]):
        world.crash(victim)
        for _ in range(8):
            world.run(1)
            told += told_of_others(world)
    assert LIE not in {why for one in told for why in (one.why, one.error)}
    refused = {name: one.engine.neighbours.refused for name, one in world.below.items()}
    assert {liar for some in refused.values() for liar in some} == {LIAR}

    world.agents[LIAR].says = None
    world.network.faults = CALM
    world.crash(world.agents[LIAR])
    world.run(20)
    assert world.settle(90)
    world.run(6)
    check_tree(world)
    assert [len(machine.commands) for machine in world.machines.values()] == [1] * len(NODES)


def hogs(message: Message) -> Message:
    """Says that more is being replaced on its node than the budget of all allows."""
    systems = [EntityId("system", f"x{number}", LIAR) for number in range(BUDGETS["parent"] + 1)]
    asks = [RoomAsk(one.name, one, 600_000, begun=True) for one in systems]
    return msgspec.structs.replace(message, room_asks=tuple(asks))


@pytest.mark.parametrize("parents", [ROOT_ALONE, PARENTS])
def test_a_node_that_lies_takes_no_more_room_from_others_than_its_own_budget_allows(
    parents: Mapping[str, tuple[str, ...]],
) -> None:
    world = settled(cluster(1, CALM, parents), 120)
    world.agents[LIAR].says = hogs
    world.run(3)
    for name in ROOM_NODES[1:]:
        world.propose(image(name, 2))
    world.run(60)
    assert {one.system for one in outages(world)} == {str(system(name)) for name in ROOM_NODES[1:]}
