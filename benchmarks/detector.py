"""How soon a parent takes a silent agent for lost, and how often one that is there, under loss.

    python -m benchmarks.detector [--loss 0.3] [--nodes 8] [--hours 0.5] [--seed 1]

In the simulated world: the engine as it is, sealed datagrams, no clock of this machine. Times are
in H, the hello, here 1 s. The bound is what no more than 5 % of luck would hide ("rule of three").
The baseline is a detector that only listens, and takes four hellos in a row that were lost for
death, by its formula.
"""

import argparse
import time

from haptera.core.sync.peers import Tier
from haptera.modules import load
from haptera.testing.network import NetworkFaults
from haptera.testing.world import World
from haptera.testing.world_process import HELLO_S
from tests.world.test_tree import wished

S = 1_000_000_000
STEP_S = 0.02
SILENT_MAX_S = 20.0
MISSED = 4
CALM = NetworkFaults()


def cluster(seed: int, nodes: int, loss: float) -> World:
    """Nodes that are on and have agents, on a network that loses so much of both directions."""
    names = [f"n{number:03d}" for number in range(nodes)]
    world = World(seed, names, [load(one).manifest() for one in ("labnode", "service")], CALM)
    for name in names:
        world.propose(wished(name))
    world.run(1)
    assert world.settle(120), "all is as desired"
    world.network.faults = NetworkFaults(loss=loss)
    return world


def tier(world: World, name: str) -> Tier:
    assert world.parent.engine is not None
    peer = world.parent.engine.neighbours.peer(name)
    assert peer is not None
    return peer.tier


def false_losses(world: World, seconds: float) -> int:
    """How often an agent that runs was taken for lost, in so much time."""
    lost: set[str] = set()
    count = 0
    for _ in range(int(seconds)):
        world.run(1)
        now = {name for name in world.agents if tier(world, name) is Tier.LOST}
        count += len(now - lost)
        lost = now
    return count


def detection(world: World, name: str) -> float:
    """How long after its agent died a node is taken for lost, in H."""
    agent = world.agents[name]
    world.run(world.clock.rng("detector").random())
    died_at = world.clock.now
    agent.crash()
    while tier(world, name) is not Tier.LOST:
        world.run(STEP_S)
        assert world.clock.now - died_at < SILENT_MAX_S * S
    took = (world.clock.now - died_at) / world.hello_ns
    agent.start()
    world.run(5)
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loss", type=float, default=0.3)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--hours", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    world = cluster(args.seed, args.nodes, args.loss)
    times = sorted(detection(world, name) for name in sorted(world.agents) for _ in range(5))
    began = time.process_time()
    false = false_losses(world, args.hours * 3600)
    node_hours, cpu_s = args.hours * args.nodes, time.process_time() - began
    print(f"loss {args.loss:.0%}, {args.nodes} nodes, seed {args.seed}")
    print(
        f"lost after (H, of {len(times)} deaths): p50 {times[len(times) // 2]:.2f}, "
        f"p99 {times[int(len(times) * 0.99)]:.2f}, max {times[-1]:.2f}"
    )
    print(
        f"false losses: {false} in {node_hours:g} node-hours "
        f"(fewer than {max(3, false * 2) / node_hours:.2g} an hour), {cpu_s:.0f} s of CPU"
    )
    passive = 3600 / HELLO_S * (1 - args.loss) * args.loss**MISSED
    print(f"a detector that only listens: {passive:.1f} false losses an hour of each node")


if __name__ == "__main__":
    main()
