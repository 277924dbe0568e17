"""What a layout is made of: sizes, points, arrows, and slots, the things that stand in layers."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Size(NamedTuple):
    width: float
    height: float


class Point(NamedTuple):
    x: float
    y: float


class Arrow(NamedTuple):
    """From a box to another, by their numbers, with a label of this size."""

    source: int
    target: int
    label: Size


@dataclass(slots=True)
class Slot:
    """A box, a label on an arrow, or a bend where an arrow passes a layer."""

    size: Size
    layer: int
    is_box: bool
    above: list[int] = field(default_factory=list)
    below: list[int] = field(default_factory=list)
    x: float = 0.0


# The numbers of slots, layer by layer, from left to right.
Layers = list[list[int]]
