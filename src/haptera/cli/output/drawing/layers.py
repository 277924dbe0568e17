"""In which layer each box stands: arrows lead down, but for those that close a circle."""

from collections.abc import Iterable, Iterator, Sequence
from graphlib import TopologicalSorter

Pair = tuple[int, int]


def layers_of(boxes: Sequence[int], pairs: Sequence[Pair]) -> dict[int, int]:
    """The layer of each box, the first 0, where pairs are to lead from a layer to a lower one.

    Boxes that come first are followed first, and from each the pairs that come first, so that
    these lead down.

    >>> layers_of([0, 1, 2], [(0, 1), (1, 2), (2, 0)])
    {0: 0, 1: 1, 2: 2}
    """
    above: dict[int, set[int]] = {box: set() for box in boxes}
    below: dict[int, set[int]] = {box: set() for box in boxes}
    for upper, lower in _downward(boxes, pairs):
        above[lower].add(upper)
        below[upper].add(lower)
    layers: dict[int, int] = {}
    order = list(TopologicalSorter(above).static_order())
    for box in order:
        layers[box] = max((layers[one] + 1 for one in above[box]), default=0)
    # What nothing leads to stands right above what it leads to.
    for box in order:
        if below[box] and not above[box]:
            layers[box] = min(layers[one] for one in below[box]) - 1
    return {box: layers[box] for box in boxes}


def _downward(boxes: Iterable[int], pairs: Iterable[Pair]) -> Iterator[Pair]:
    """The pairs, turned round where they lead back to a box on the way that is being followed."""
    leaving: dict[int, list[int]] = {box: [] for box in boxes}
    for source, target in pairs:
        if source != target:
            leaving[source].append(target)
    way: list[tuple[int, Iterator[int]]] = []
    passing: set[int] = set()
    seen: set[int] = set()
    for root in leaving:
        if root not in seen:
            way.append((root, iter(leaving[root])))
            passing.add(root)
            seen.add(root)
        while way:
            box, targets = way[-1]
            target = next(targets, box)
            if target == box:  # No pair leads from a box to itself: there are no more.
                passing.discard(box)
                way.pop()
                continue
            yield (target, box) if target in passing else (box, target)
            if target not in seen:
                way.append((target, iter(leaving[target])))
                passing.add(target)
                seen.add(target)
