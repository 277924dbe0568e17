"""Where slots stand: as near to those that they are joined to as their neighbours allow."""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import inf
from typing import Final

from haptera.cli.output.drawing.shapes import Layers, Slot

ROUNDS: Final = 48
STRAIGHTENINGS: Final = 4
GAP: Final = 18.0
# How much more an arrow's bends are drawn to each other than to its boxes: it should be straight.
STRAIGHT: Final = 6.0
# What a slot is drawn to, round by round.
SIDES: Final[tuple[Callable[[Slot], Sequence[int]], ...]] = (
    lambda slot: slot.above,
    lambda slot: slot.below,
    lambda slot: (*slot.above, *slot.below),
)

Beside = dict[int, tuple[int | None, int | None]]


def place(slots: Sequence[Slot], layers: Layers, chains: Sequence[Sequence[int]]) -> None:
    """Give each slot its x, the leftmost edge being 0; `chains` are the slots each arrow passes."""
    for layer in layers:
        _settle(slots, layer, lambda _: ())
    for number in range(ROUNDS):
        for layer in layers if number % 2 == 0 else reversed(layers):
            _settle(slots, layer, SIDES[number % len(SIDES)])
    beside = _beside(layers)
    for _ in range(STRAIGHTENINGS):
        for chain in chains:
            _straighten(slots, beside, chain)
    left = min((slot.x - slot.size.width / 2 for slot in slots), default=0.0)
    for slot in slots:
        slot.x -= left


def spread(
    wanted: Sequence[float], weights: Sequence[float], apart: Sequence[float]
) -> list[float]:
    """The places nearest to those wanted, by weight, in their order and so far apart.

    `apart` has, for each but the last, how far the next must be away. Least squares: what is too
    near to each other is moved together, as a block.

    >>> spread([0, 0], [1, 1], [10])
    [-5.0, 5.0]
    """
    offsets = list(accumulate(apart, initial=0.0))[: len(wanted)]
    blocks: list[tuple[float, float, int]] = []
    for want, weight, offset in zip(wanted, weights, offsets, strict=True):
        mean, total, count = want - offset, weight, 1
        while blocks and blocks[-1][0] >= mean:
            other, more, some = blocks.pop()
            mean = (mean * total + other * more) / (total + more)
            total, count = total + more, count + some
        blocks.append((mean, total, count))
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _straighten(slots: Sequence[Slot], beside: Beside, chain: Sequence[int]) -> None:
    """Stand an arrow's bends straight below each other, as far as their neighbours leave room."""
    run: list[int] = []
    low, high = -inf, inf
    for number in chain:
        least, most = _room(slots, beside, number)
        if max(low, least) > min(high, most):
            _stand(slots, run, low, high)
            run, low, high = [], -inf, inf
        run.append(number)
        low, high = max(low, least), min(high, most)
    _stand(slots, run, low, high)


def _stand(slots: Sequence[Slot], run: Sequence[int], low: float, high: float) -> None:
    mean = sum(slots[number].x for number in run) / max(1, len(run))
    for number in run:
        slots[number].x = min(max(mean, low), high)


def _room(slots: Sequence[Slot], beside: Beside, number: int) -> tuple[float, float]:
    """How far to either side a slot may stand."""
    left, right = beside[number]
    least = -inf if left is None else slots[left].x + _apart(slots[left], slots[number])
    most = inf if right is None else slots[right].x - _apart(slots[number], slots[right])
    return least, most


def _beside(layers: Layers) -> Beside:
    """The neighbours of each slot."""
    return {
        number: (left, right)
        for layer in layers
        for left, number, right in zip([None, *layer], layer, [*layer[1:], None], strict=False)
    }


def _apart(left: Slot, right: Slot) -> float:
    return (left.size.width + right.size.width) / 2 + GAP


def _settle(
    slots: Sequence[Slot], layer: Sequence[int], joined: Callable[[Slot], Sequence[int]]
) -> None:
    here = [slots[number] for number in layer]
    wanted, weights = [], []
    for slot in here:
        ends = [slots[one] for one in joined(slot)]
        pulls = [1.0 if slot.is_box or end.is_box else STRAIGHT for end in ends]
        total = sum(pulls)
        mean = sum(pull * end.x for pull, end in zip(pulls, ends, strict=True))
        wanted.append(mean / total if total else slot.x)
        weights.append(total or 0.1)
    apart = [_apart(*pair) for pair in pairwise(here)]
    for slot, x in zip(here, spread(wanted, weights, apart), strict=True):
        slot.x = x
