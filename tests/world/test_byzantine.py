"""A node that lies with its own key: it may lie about itself, and harms nobody else by it."""

import msgspec
import pytest

from haptera.core.state.side import PARENT
from haptera.core.views.query import view
from haptera.model.answers.views import Condition
from haptera.model.entity import EntityId, node_id
from haptera.model.facts import Method
from haptera.model.messages import (
    DesiredUpdate,
    Message,
    ObservedUpdate,
    Permit,
    SeenValue,
    Standing,
)
from haptera.testing.network import NetworkFaults
from haptera.testing.world import World
from haptera.testing.world_process import WorldProcess
from tests.core.scenario import row_of
from tests.world.evidence import Told, gather
from tests.world.history import CALM, NODES, ROUGH, cluster, settled, web
from tests.world.oracle import what_is_told_was_read

LIAR, OTHERS = NODES[0], NODES[1:]
LIE = "the disk burns"
FAR = 1 << 62


def forged(entity: EntityId, version: int) -> ObservedUpdate:
    """A word on an entity that is another node's, or this one's."""
    seen = {
        name: SeenValue(value, True, Method.READ, 0, "sync")
        for name, value in {"run": "failed", "busy": "busy", "agent": "up", "power": "off"}.items()
    }
    return ObservedUpdate(entity, version, seen, standing=Standing(Condition.STUCK, 0, LIE))


def lies(message: Message) -> Message:
    """What a node that was broken into says in place of the truth."""
    told = [forged(web(name), version) for name in NODES for version in (9, FAR)]
    told += [forged(node_id(name), FAR) for name in OTHERS]
    permits = tuple(Permit(f"{number}", granted=True) for number in range(9))
    return msgspec.structs.replace(
        message, updates=(*message.updates, *told), permits=(*(message.permits or ()), *permits)
    )


def listen(world: World) -> list[Told]:
    """What the parent tells people of the others."""
    engine, now = world.parent.engine, world.clock.now
    if engine is None:
        return []
    rows = [row for row in engine.table if row.id.node in OTHERS]
    return [Told(now, "parent", world.parent.instance, view(row, now)) for row in rows]


def suborn(world: World) -> WorldProcess:
    agent = world.agents[LIAR]
    agent.says = lies
    return agent


@pytest.mark.parametrize(("seed", "faults"), [(1, CALM), (2, ROUGH), (3, ROUGH), (4, ROUGH)])
def test_a_node_that_lies_changes_what_is_known_of_no_other(
    seed: int, faults: NetworkFaults
) -> None:
    world = settled(cluster(seed, CALM), 30)
    world.network.faults = faults
    agent = suborn(world)
    told: list[Told] = []
    for name in (*OTHERS, *OTHERS):
        world.crash(world.parent)
        world.machines[name].services.clear()
        for _ in range(12):
            world.run(1)
            told += listen(world)
    assert LIE not in {why for one in told for why in (one.view.why, one.view.error)}
    what_is_told_was_read(gather(world, [*world.catalog.manifests.values()], told))
    engine = world.parent.engine
    assert engine is not None
    assert engine.neighbours.refused.keys() == {LIAR}

    agent.says = None
    world.network.faults = CALM
    world.crash(agent)
    assert world.settle(60)
    assert [len(machine.commands) for machine in world.machines.values()] == [1] * len(NODES)


def test_a_node_that_lies_cannot_lock_its_own_truth_out_for_good() -> None:
    world = settled(cluster(5, CALM), 30)
    agent = suborn(world)
    world.run(5)
    agent.says = None
    world.run(20)
    assert row_of(world.parent, web(LIAR)).link.heard < FAR


def misdirects(message: Message) -> Message:
    """What a parent says that takes one node's link for another's."""
    revision = max((one.version for one in message.updates), default=9)
    told = [DesiredUpdate(web(name), revision, {"run": "down"}, {}) for name in NODES]
    far = [DesiredUpdate(web(name), FAR, {"run": "down"}, {}) for name in NODES]
    return msgspec.structs.replace(message, updates=(*message.updates, *told, *far))


def test_an_agent_takes_nothing_over_that_is_desired_of_other_nodes() -> None:
    world = settled(cluster(6, CALM), 30)
    world.parent.says = misdirects
    world.run(20)
    for name, agent in world.agents.items():
        assert agent.engine is not None
        assert {row.id.node for row in agent.engine.table} <= {None, name}
        assert agent.engine.table.revision < FAR
        assert agent.engine.neighbours.refused.keys() == {PARENT}

    world.parent.says = None
    world.crash(world.parent)
    assert world.settle(60)
