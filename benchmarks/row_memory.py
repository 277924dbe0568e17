"""What memory a node of 20 variables takes in a parent, and what Python takes at the least.

    python -m benchmarks.row_memory [NODES]

Each of the variables was read, at a time of its own, and ten of them are desired. The floor is the
same facts in one dict for each node: without them, nobody could tell who read what, and when.
Counted by Python (tracemalloc) without the nodes' names; a row's parts are counted empty, too.
"""

import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

from haptera.core.state.entity.attempts import Attempts
from haptera.core.state.entity.belief import Belief
from haptera.core.state.entity.desired_state import DesiredState
from haptera.core.state.entity.link_state import LinkState
from haptera.core.state.entity.node_report import NodeReport
from haptera.core.state.entity.stance import Stance
from haptera.core.state.entity.work import EntityWork
from haptera.core.state.row import EntityState
from haptera.kinds import KINDS
from haptera.model.changes import Desired
from haptera.model.entity import EntityId, node_id
from haptera.model.facts import Fact, Method

NODES = 2_000
VARIABLES = [f"variable{number}" for number in range(20)]
DESIRED = VARIABLES[:10]
IDS: list[EntityId] = []
PARTS = (DesiredState, Belief, NodeReport, LinkState, EntityWork, Attempts, Stance)


def fact(number: int, at: int) -> Fact:
    return Fact("on", "module", Method.READ, 10**15 + number * 1_000 + at, 1)


def facts(number: int) -> dict[str, Fact]:
    """The floor: what was read of one node."""
    return {name: fact(number, at) for at, name in enumerate(VARIABLES)}


def empty(number: int) -> EntityState:
    """A row of which nothing is known yet."""
    return EntityState(IDS[number], KINDS["node"])


def row(number: int) -> EntityState:
    """A row of one node, as looks fill it."""
    made = empty(number)
    for name, one in facts(number).items():
        made.belief.learn(name, one)
    made.desired.values = dict.fromkeys(DESIRED, Desired("on", "site"))
    return made


def bytes_each(make: Callable[[int], Any], nodes: int) -> float:
    """What one takes of so many, beside what is made once."""
    make(0)
    tracemalloc.start()
    made = [make(number) for number in range(nodes)]
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken / len(made)


def main() -> None:
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else NODES
    IDS.extend(node_id(f"n{number}") for number in range(nodes))
    floor, whole, bare = (bytes_each(make, nodes) for make in (facts, row, empty))
    sys.stdout.write(f"{nodes} nodes of {len(VARIABLES)} variables, bytes each\n")
    sys.stdout.write(f"{floor:8.0f}  the facts in a dict: the floor\n")
    sys.stdout.write(f"{whole:8.0f}  a row: {whole - floor:.0f} more, {whole / floor:.2f} times\n")
    sys.stdout.write(f"{bare:8.0f}  of that, a row of which nothing is known\n")
    for part in PARTS:
        taken = bytes_each(lambda _, part=part: part(), nodes)
        sys.stdout.write(f"{taken:8.0f}    {part.__name__}\n")


if __name__ == "__main__":
    main()
