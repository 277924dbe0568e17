"""A graph laid out from above to below: boxes in layers, arrows between, each with its label."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

from haptera.cli.output.drawing.layers import layers_of
from haptera.cli.output.drawing.order import ordered
from haptera.cli.output.drawing.place import place, spread
from haptera.cli.output.drawing.shapes import Arrow, Layers, Point, Size, Slot

GAP_MIN: Final = 4.0
GAP_MAX: Final = 48.0
# How much farther apart layers are for an arrow that goes so far to the side between them.
SLOPE: Final = 0.14
PORT_GAP: Final = 12.0
# How near to a corner of its box an arrow may end.
CORNER: Final = 12.0
# How far an arrow goes straight on before its box, and after.
EDGE: Final = 10.0
BEND: Final = Size(2.0, 0.0)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where all is: the middles of boxes and labels, and each arrow's points from end to end."""

    size: Size
    boxes: list[Point]
    labels: list[Point]
    routes: list[list[Point]]


@dataclass(frozen=True, slots=True)
class _Chain:
    """The slots that an arrow passes, from the upper box to the lower; one is its label."""

    slots: list[int]
    label: int
    turned: bool


class _Band(NamedTuple):
    """From where to where a layer lies."""

    top: float
    bottom: float

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


def lay_out(sizes: Sequence[Size], arrows: Sequence[Arrow], first: Sequence[int] = ()) -> Layout:
    """Lay out boxes of these sizes; no arrow leads from a box to itself.

    Arrows lead down if they can, those that come first above all; so does the way along the
    boxes that come `first`.
    """
    order = list(dict.fromkeys([*first, *range(len(sizes))]))
    levels = layers_of(order, [(one.source, one.target) for one in arrows])
    slots = [Slot(sizes[box], 2 * levels[box], is_box=True) for box in range(len(sizes))]
    chains = _chains(slots, arrows)
    layers: Layers = [[] for _ in range(max((slot.layer for slot in slots), default=-1) + 1)]
    for number in [*order, *range(len(sizes), len(slots))]:
        layers[slots[number].layer].append(number)
    layers = ordered(slots, layers)
    place(slots, layers, [chain.slots[1:-1] for chain in chains])
    return _placed(slots, layers, chains, len(sizes))


def _chains(slots: list[Slot], arrows: Sequence[Arrow]) -> list[_Chain]:
    """Add the slots that arrows pass, and join them."""
    crowd: dict[int, float] = {}
    chains = []
    for arrow in arrows:
        turned = slots[arrow.source].layer > slots[arrow.target].layer
        upper, lower = sorted((arrow.source, arrow.target), key=lambda box: slots[box].layer)
        passed = range(slots[upper].layer + 1, slots[lower].layer)
        near = passed[::-2] if turned else passed[::2]
        # Where most room is left; of two such, nearer to where the arrow begins.
        label = min(near, key=lambda layer: crowd.get(layer, 0.0))
        crowd[label] = crowd.get(label, 0.0) + arrow.label.width
        chain = [upper]
        for layer in passed:
            chain.append(len(slots))
            size = arrow.label if layer == label else BEND
            slots.append(Slot(size, layer, is_box=False))
        chain.append(lower)
        for one, other in pairwise(chain):
            slots[one].below.append(other)
            slots[other].above.append(one)
        chains.append(_Chain(chain, chain[1 + passed.index(label)], turned))
    return chains


def _placed(slots: Sequence[Slot], layers: Layers, chains: Sequence[_Chain], boxes: int) -> Layout:
    bands = list(_bands(slots, layers))
    points = [Point(slot.x, bands[slot.layer].middle) for slot in slots]
    starts = _ports(slots, range(boxes), down=True)
    ends = _ports(slots, range(boxes), down=False)
    routes = []
    for chain in chains:
        upper, *passed, lower = chain.slots
        start, end = starts[upper, passed[0]], ends[lower, passed[-1]]
        route = [Point(start, points[upper].y + slots[upper].size.height / 2)]
        route.append(Point(start, bands[slots[upper].layer].bottom))
        for number in passed:
            band = bands[slots[number].layer]
            route += [Point(slots[number].x, band.top), Point(slots[number].x, band.bottom)]
        route.append(Point(end, bands[slots[lower].layer].top))
        route.append(Point(end, points[lower].y - slots[lower].size.height / 2))
        routes.append(route[::-1] if chain.turned else route)
    return Layout(
        Size(
            max((slot.x + slot.size.width / 2 for slot in slots), default=0.0),
            bands[-1].bottom if bands else 0.0,
        ),
        points[:boxes],
        [points[chain.label] for chain in chains],
        routes,
    )


def _bands(slots: Sequence[Slot], layers: Layers) -> Iterator[_Band]:
    """Where each layer lies: farther below the one above it, the farther arrows go to the side."""
    y = 0.0
    for layer in layers:
        edge = EDGE if any(slots[one].is_box for one in layer) else 0.0
        height = max((slots[one].size.height for one in layer), default=0.0) + 2 * edge
        yield _Band(y, y + height)
        aside = [abs(slots[one].x - slots[below].x) for one in layer for below in slots[one].below]
        y += height + min(GAP_MAX, GAP_MIN + SLOPE * max(aside, default=0.0))


def _ports(
    slots: Sequence[Slot], boxes: Sequence[int], *, down: bool
) -> dict[tuple[int, int], float]:
    """Where on its boxes each arrow begins and ends: as straight as it can."""
    ports = {}
    for number in boxes:
        box = slots[number]
        joined = sorted(box.below if down else box.above, key=lambda one: slots[one].x)
        reach = box.size.width / 2 - CORNER
        gap = min(PORT_GAP, 2 * reach / max(1, len(joined) - 1))
        wanted = [slots[one].x - box.x for one in joined]
        found = spread(wanted, [1.0] * len(joined), [gap] * (len(joined) - 1))
        for before, (one, x) in enumerate(zip(joined, found, strict=True)):
            least, most = before * gap - reach, reach - (len(joined) - 1 - before) * gap
            ports[number, one] = box.x + min(max(x, least), most)
    return ports
