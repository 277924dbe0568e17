"""A small cluster's history, drawn from a seed: what was asked, and what broke."""

from haptera.core.state.limits import S
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.modules import load
from haptera.testing.machine import Machine
from haptera.testing.network import NetworkFaults
from haptera.testing.world import World

NODES = ("n01", "n02", "n03", "n04")
CALM, ROUGH = NetworkFaults(), NetworkFaults(loss=0.15, copies=0.05, late=0.03)


def web(node: str) -> EntityId:
    return EntityId("service", "web", node)


def cluster(seed: int, faults: NetworkFaults) -> World:
    """Nodes that should be on, each with a service that should run."""
    manifests = [load(name).manifest() for name in ("labnode", "service")]
    world = World(seed, NODES, manifests, faults)
    for name in NODES:
        world.propose(
            (
                Declare(node_id(name), {"platform": "labnode"}, "site"),
                SetDesired(node_id(name), "power", "on", "site"),
                SetDesired(node_id(name), "agent", "up", "site"),
                Declare(web(name), {}, "site"),
                SetDesired(web(name), "run", "running", "site"),
                SetDesired(web(name), "command", "web", "site"),
            )
        )
    world.run(1)
    return world


def settled(world: World, within_s: float) -> World:
    """The cluster once all in it is as desired, which it must be within this time."""
    assert world.settle(within_s)
    return world


class History:
    """A cluster on which things break and wishes change, in seeded order."""

    def __init__(self, seed: int) -> None:
        self.world = cluster(seed, ROUGH)
        self.rng = self.world.clock.rng("history")
        self.asked: dict[int, tuple[EntityId, int]] = {}

    def unfold(self, steps: int) -> None:
        for _ in range(steps):
            self.world.run(self.rng.random() * 3)
            self._happen(self.rng.choice(list(self.world.machines.values())))

    def calm_down(self) -> bool:
        """No fault from now on: tells whether all comes to be as desired."""
        self.world.network.faults = CALM
        self.world.run(10)
        return self.world.settle(60)

    def _happen(self, machine: Machine) -> None:
        world, agent = self.world, self.world.agents.get(machine.name)
        match self.rng.randrange(9):
            case 0 if world.parent.engine is not None:
                world.crash(world.parent)
            case 1 if agent is not None and agent.engine is not None:
                world.crash(agent)
            case 2:
                machine.cut()
            case 3:
                machine.services.clear()
            case 4:
                world.parent.lose_module("labnode")
            case 5 if agent is not None:
                agent.lose_module("service")
            case 6:
                pair = frozenset(("parent", machine.name))
                world.network.cut.add(pair)
                world.clock.after(int(self.rng.random() * 8 * S), world.network.cut.discard, pair)
            case _ if world.parent.engine is not None:
                port = self.rng.randrange(1000, 9999)
                change = SetDesired(web(machine.name), "port", port, "site")
                self.asked[world.propose([change])] = (change.entity, port)
            case _:
                pass
