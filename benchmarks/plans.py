"""What it costs to plan what changes would start, of 10,000 nodes with a service each.

    python -m benchmarks.plans [ROUNDS]

Half of the nodes are to be on and half off, of nothing is anything known, and each service is to
run. The plan is made by an engine, turn by turn, as a parent makes it for `haptera plan`; the
baseline is the first turn of that engine, in which it decides on each of these entities once.
Figures are CPU time, the least of all rounds; the ratio is what counts, and the longest turn is
for how long nobody is heard meanwhile. The first one is told apart: it begins to check all that is
asked for, as a write of it does. In each round the nodes have other names, for sets of names are
kept folded.

All of this is without Python's garbage collector; the longest turn of as many rounds is told with
it as it is, too, and as a parent has it.
"""

import gc
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from time import process_time_ns

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import MS, S
from haptera.core.state.side import Side
from haptera.kinds import KINDS
from haptera.model.answers.plan import Plan
from haptera.model.changes import Change, SetDesired, Stored, StoredEntity
from haptera.model.effects import PlanReply
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Considered, Ticked
from haptera.model.parts import Context
from haptera.modules import BUNDLED, load
from haptera.runtime.garbage import old_objects_frozen

ROUNDS = 3
RACKS, IN_RACK = 250, 40


class Cluster:
    """Nodes of names that no other round has, each with a service."""

    def __init__(self, number: int) -> None:
        racks = [f"r{number}rack{rack}" for rack in range(1, RACKS + 1)]
        self.names = [f"{rack}n{n:02}" for rack in racks for n in range(1, IN_RACK + 1)]
        self.webs = [EntityId("service", "web", name) for name in self.names]

    def stored(self) -> Stored:
        platform = {"platform": "labnode"}
        nodes = [StoredEntity(node_id(name), platform, "site", {}, 1) for name in self.names]
        services = [StoredEntity(web, {}, "site", {}, 1) for web in self.webs]
        return Stored(1, 1, [*nodes, *services], [], {})

    def wanted(self) -> tuple[Change, ...]:
        half = len(self.names) // 2
        powers = [(name, "on" if at < half else "off") for at, name in enumerate(self.names)]
        return (
            *(SetDesired(node_id(name), "power", power, "site") for name, power in powers),
            *(SetDesired(web, "run", "running", "site") for web in self.webs),
        )


def engine(cluster: Cluster) -> tuple[Engine, int]:
    """An engine that has decided on all, and how long that took."""
    side = Side(Context.PARENT, node=None, instance=1, kernel_boot="-", hello_ns=5 * S)
    catalog = Catalog(KINDS, [load(name).manifest() for name in BUNDLED])
    made = Engine(side, catalog, cluster.stored(), 0, S)
    began = process_time_ns()
    made.handle([Ticked()], S)
    while (due := made.deadline()) is not None and due <= S:
        made.handle([Ticked()], S)
    return made, process_time_ns() - began


def turns(made: Engine, changes: tuple[Change, ...]) -> tuple[Plan, list[int]]:
    """The plan, and how long each turn took that was spent on it."""
    event: Considered | Ticked = Considered(1, changes)
    took: list[int] = []
    while True:
        began = process_time_ns()
        effects = made.handle([event], 2 * S)
        took.append(process_time_ns() - began)
        for effect in effects:
            if isinstance(effect, PlanReply) and effect.plan is not None:
                return effect.plan, took
        event = Ticked()


def longest_with(collector: Callable[[], AbstractContextManager[None]], number: int) -> int:
    """The longest turn but the first, where garbage is collected."""
    gc.enable()
    try:
        with collector():
            cluster = Cluster(number)
            made, _ = engine(cluster)
            _, took = turns(made, cluster.wanted())
            return max(took[1:])
    finally:
        gc.disable()


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    decided, planned, first, longest = [], [], [], []
    gc.disable()
    for number in range(rounds):
        cluster = Cluster(number)
        made, began = engine(cluster)
        plan, took = turns(made, cluster.wanted())
        decided.append(began)
        planned.append(sum(took))
        first.append(took[0])
        longest.append(max(took[1:]))
    base, whole = min(decided), min(planned)
    entities = len(cluster.names) + len(cluster.webs)
    print(f"deciding on {entities:,} entities  {base / MS:6.0f} ms")
    print(f"planning for all of them    {whole / MS:6.0f} ms, {whole / base:.1f} times as long")
    print(f"  in {len(took)} turns, the first {min(first) / MS:.0f} ms,", end=" ")
    print(f"the longest of the others {min(longest) / MS:.0f} ms")
    print(f"  told in {len(plan.groups)} groups")
    as_it_is = max(longest_with(nullcontext, rounds + one) for one in range(rounds))
    frozen = max(longest_with(old_objects_frozen, 2 * rounds + one) for one in range(rounds))
    print(f"  the longest with Python's garbage collector {as_it_is / MS:.0f} ms,", end=" ")
    print(f"with a parent's {frozen / MS:.0f} ms")


if __name__ == "__main__":
    main()
