"""In which order slots stand in their layer: such that few arrows cross."""

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from typing import Final

from haptera.cli.output.drawing.shapes import Layers, Slot

SWEEPS_MAX: Final = 24
# How often all neighbours of a layer are looked at, whether they had better change places.
SWAPS_MAX: Final = 8


def ordered(slots: Sequence[Slot], layers: Layers) -> Layers:
    """The best order found, by putting each slot in the middle of those that it is joined to."""
    best, fewest = layers, crossings(slots, layers)
    for sweep in range(SWEEPS_MAX):
        if not fewest:
            break
        layers = _swept(slots, layers, down=sweep % 2 == 0)
        count = crossings(slots, layers)
        if count < fewest:
            best, fewest = layers, count
    return best


def crossings(slots: Sequence[Slot], layers: Layers) -> int:
    """How often arrows cross between layers."""
    places = _places(layers)
    count = 0
    for layer in layers:
        passed: list[int] = []
        for number in layer:
            ends = sorted(places[one] for one in slots[number].below)
            count += sum(len(passed) - bisect_right(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return count


def _swept(slots: Sequence[Slot], layers: Layers, *, down: bool) -> Layers:
    layers = [list(layer) for layer in layers]
    places = _places(layers)
    for layer in layers if down else reversed(layers):
        middles = {}
        for number in layer:
            joined = slots[number].above if down else slots[number].below
            ends = [places[one] for one in joined]
            middles[number] = sum(ends) / len(ends) if ends else places[number]
        layer.sort(key=middles.__getitem__)
        places.update(_places([layer]))
        _swap(slots, layer, places)
    return layers


def _swap(slots: Sequence[Slot], layer: list[int], places: dict[int, int]) -> None:
    """Change the places of neighbours for as long as that saves crossings."""
    for _ in range(SWAPS_MAX):
        swapped = False
        for place in range(len(layer) - 1):
            left, right = layer[place : place + 2]
            now = _crossed(slots, places, left, right)
            if _crossed(slots, places, right, left) < now:
                layer[place : place + 2] = right, left
                places[left], places[right] = place + 1, place
                swapped = True
        if not swapped:
            break


def _crossed(slots: Sequence[Slot], places: dict[int, int], left: int, right: int) -> int:
    """How often the arrows of two neighbours cross each other."""
    return _inversions(places, slots[left].above, slots[right].above) + _inversions(
        places, slots[left].below, slots[right].below
    )


def _inversions(places: dict[int, int], left: Iterable[int], right: Iterable[int]) -> int:
    return sum(places[one] > places[other] for one in left for other in right)


def _places(layers: Iterable[Sequence[int]]) -> dict[int, int]:
    return {number: place for layer in layers for place, number in enumerate(layer)}
