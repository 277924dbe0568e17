"""What it costs to tell 200 listeners of a change, filtered and coalesced, and what a stalled one.

    python -m benchmarks.events [ROUNDS]

A round is 50 turns of an engine in which 20 of 2,000 entities changed; then all listeners take
what they were not told. The baseline, in the same run and in turns with it, is a bare list of 200
`asyncio.Queue`s, each given every turn's changes, which its reader walks: no filter, no coalescing,
and, unless the reader keeps up, no end. Figures are CPU time for each change and listener; the
ratios are what counts.
"""

import asyncio
import statistics
import sys
from collections.abc import Callable
from random import Random
from time import process_time_ns

from haptera.core.views.bus import Bus, Listener
from haptera.model.entity import EntityId, node_id
from haptera.model.news import News, Types
from haptera.selectors.selector import parse_selector
from haptera.selectors.subscription import Subscription

ROUNDS = 20
ROUNDS_WARM = 3
LISTENERS = 200
ENTITIES = 2_000
CHANGED = 20
TURNS = 50
NODES = [node_id(f"n{number}") for number in range(ENTITIES)]

Turn = tuple[list[EntityId], list[Types]]
Round = Callable[[list[Turn]], None]


def turns(rng: Random) -> list[Turn]:
    types = [frozenset({one}) for one in (News.OBSERVED, News.CONDITION, News.DESIRED)]
    return [
        (changed := rng.sample(NODES, CHANGED), [rng.choice(types) for _ in changed])
        for _ in range(TURNS)
    ]


def queues() -> Round:
    """Each listener a queue of all that happened."""
    made: list[asyncio.Queue[Turn]] = [asyncio.Queue() for _ in range(LISTENERS)]

    def run(happening: list[Turn]) -> None:
        for turn in happening:
            for queue in made:
                queue.put_nowait(turn)
        for queue in made:
            while not queue.empty():
                for _ in queue.get_nowait()[0]:
                    pass

    return run


def a_bus(wanted: list[Subscription], *, stalled: int = 0) -> Round:
    """These listeners, of whom the last `stalled` never take."""
    bus = Bus("e", lambda: NODES)
    listeners = [bus.listen(one, lambda: None) for one in wanted]
    for one in listeners:
        drain(one)

    def run(happening: list[Turn]) -> None:
        for entities, types in happening:
            bus.publish(entities, types)
        for one in listeners[: LISTENERS - stalled]:
            drain(one)

    return run


def drain(listener: Listener) -> None:
    while listener.drain(200) is not None:
        pass


def all_alike() -> list[Subscription]:
    return [Subscription()] * LISTENERS


def each_its_rack() -> list[Subscription]:
    """Each its own ten nodes, in observed state only."""
    sets = [f"node:n[{10 * at}-{10 * at + 9}]" for at in range(LISTENERS)]
    only = frozenset({News.OBSERVED})
    return [Subscription(only, frozenset({"node"}), parse_selector(text)) for text in sets]


def measure(rounds: int) -> dict[str, float]:
    paths = {
        "list of queues": queues(),
        "bus, all want all": a_bus(all_alike()),
        "bus, each its own ten nodes": a_bus(each_its_rack()),
        "bus, all want all, half stalled": a_bus(all_alike(), stalled=LISTENERS // 2),
    }
    taken: dict[str, list[int]] = {name: [] for name in paths}
    rng = Random(1)
    for _ in range(ROUNDS_WARM + rounds):
        happening = turns(rng)
        for name, run in paths.items():
            begun = process_time_ns()
            run(happening)
            taken[name].append(process_time_ns() - begun)
    each = TURNS * CHANGED * LISTENERS
    return {name: statistics.median(some[ROUNDS_WARM:]) / each for name, some in taken.items()}


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    results = measure(rounds)
    base = results["list of queues"]
    print(f"{LISTENERS} listeners, {CHANGED} changes a turn, {rounds} rounds of {TURNS} turns")
    print(f"{'way':34}{'CPU ns a change and listener':>30}{'to queues':>11}")
    for name, cost in results.items():
        print(f"{name:34}{cost:30.0f}{cost / base:10.1f}x")


if __name__ == "__main__":
    main()
