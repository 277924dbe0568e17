"""What it costs to rehearse a change of a whole cluster, and an idle day of it, in seconds of CPU.

    python -m benchmarks.rehearsal [NODES]

Each node has a service, which the change replaces; one service never starts, so that the day is
played to its end. The baseline is the world of the tests, where
each node has an agent with an engine and a sealed link of its own, at a twentieth of the nodes.
"""

import sys
import time

from haptera.core.state.limits import S
from haptera.kinds import KINDS
from haptera.model.changes import Declare, Desired, SetDesired, StoredEntity
from haptera.model.entity import EntityId, node_id
from haptera.modules import load
from haptera.rehearsal.faults import parse_fault
from haptera.rehearsal.present import Present
from haptera.rehearsal.rehearse import Rehearsal, rehearse
from haptera.testing.network import NetworkFaults
from haptera.testing.world import World

MODULES = ("labnode", "service", "jobs")
BASELINE = 20


def web(name: str) -> EntityId:
    return EntityId("service", "web", name)


def the_present(names: list[str]) -> Present:
    entities, values = [], {}
    for name in names:
        desired = {"power": Desired("on", "site")}
        entities.append(StoredEntity(node_id(name), {"platform": "labnode"}, "site", desired, 1))
        desired = {"run": Desired("running", "site"), "command": Desired("sleep 1", "site")}
        entities.append(StoredEntity(web(name), {}, "site", desired, 1))
        values[node_id(name)] = {"power": "on", "agent": "up", "busy": "free"}
        values[web(name)] = {"run": "running", "applied": "current"}
    return Present(
        1, tuple(entities), values, tuple(load(one).manifest() for one in MODULES), KINDS
    )


def rehearsed(nodes: int) -> None:
    names = [f"n{number}" for number in range(nodes)]
    present = the_present(names)
    changes = [SetDesired(web(name), "command", "sleep 2", "site") for name in names]
    for faults in ([], [parse_fault("n0: nothing starts at 0s for 2d")]):
        began = time.process_time()
        run = rehearse(present, Rehearsal(changes, faults), 1)
        took = time.process_time() - began
        until = "a day, one stuck" if run.settled_s is None else f"done after {run.settled_s:.0f} s"
        rate = nodes * 24 / took if run.settled_s is None else None
        rate_text = "" if rate is None else f", {rate:.0f} node-hours a second"
        print(f"{nodes} nodes, {len(run.spans)} steps, {until}: {took:.1f} s of CPU{rate_text}")


def baseline(nodes: int) -> None:
    names = [f"n{number}" for number in range(nodes)]
    world = World(1, names, [load(one).manifest() for one in MODULES], NetworkFaults(), hello_s=5)
    world.checked_every = 1_000_000
    for name in names:
        world.propose(
            [
                Declare(node_id(name), {"platform": "labnode"}, "site"),
                SetDesired(node_id(name), "power", "on", "site"),
            ]
        )
    world.run(60)
    began, from_ns = time.process_time(), world.clock.now
    world.run(60)
    took = time.process_time() - began
    hours = nodes * (world.clock.now - from_ns) / S / 3_600
    print(f"with an engine for each of {nodes} nodes, idle: {hours / took:.1f} node-hours a second")


def main() -> None:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rehearsed(nodes)
    baseline(max(2, nodes // BASELINE))


if __name__ == "__main__":
    main()
