"""A silent node counts as lost after its leases are over, until it is heard again."""

from haptera.core.state.limits import S
from haptera.core.state.side import PARENT
from haptera.core.sync.peers import LEASE_FOR, LOST_AFTER
from haptera.core.views.query import view
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from haptera.modules import load
from haptera.testing.network import NetworkFaults
from haptera.testing.world import World
from haptera.testing.world_process import HELLO_NS

N1 = node_id("n1")


def lost_ms(world: World) -> int | None:
    engine = world.parent.engine
    assert engine is not None
    row = engine.table.get(N1)
    assert row is not None
    return view(row, world.clock.now).lost_ms


def test_a_silent_node_is_lost_after_its_leases_are_over_and_until_it_is_heard() -> None:
    world = World(1, ["n1"], [load("labnode").manifest()], NetworkFaults())
    world.propose(
        [
            Declare(N1, {"platform": "labnode"}, "site"),
            SetDesired(N1, "power", "on", "site"),
            SetDesired(N1, "agent", "up", "site"),
        ]
    )
    world.run(1)
    assert world.settle(60)
    assert lost_ms(world) is None

    world.network.cut.add(frozenset((PARENT, "n1")))
    world.run(LEASE_FOR * HELLO_NS / 10 / S)
    assert lost_ms(world) is None
    world.run((LOST_AFTER - LEASE_FOR) * HELLO_NS / 10 / S + 1)
    assert lost_ms(world) is not None

    world.network.cut.clear()
    world.run(3)
    assert lost_ms(world) is None
