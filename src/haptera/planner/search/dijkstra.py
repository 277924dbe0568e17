"""Dijkstra's algorithm, backwards: how far each state is from the nearest goal state.

Dijkstra, "A Note on Two Problems in Connexion with Graphs", Numerische Mathematik 1, 1959.
"""

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import Final

UNREACHED: Final = float("inf")

# For a state, from which states one comes to it, and at what cost.
Before = Mapping[int, Iterable[tuple[int, int]]]


def distances(ends: Iterable[int], before: Before) -> dict[int, int]:
    """What it costs at the least from each state to an end; without those that lead to none."""
    costs = dict.fromkeys(ends, 0)
    queue = [(0, state) for state in costs]
    heapify(queue)
    while queue:
        cost, state = heappop(queue)
        if cost > costs[state]:
            continue
        for earlier, more in before.get(state, ()):
            if earlier not in costs or cost + more < costs[earlier]:
                costs[earlier] = cost + more
                heappush(queue, (cost + more, earlier))
    return costs
