"""How variables stand with many entities, in columns, and which of them stand as asked."""

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_

import numpy as np
from numpy.typing import NDArray

from haptera.planner.domain.bitstate import Field

# How one variable stands with each entity: the place of the bit that is set in its field.
Column = NDArray[np.uint8] | NDArray[np.uint16]
Sheet = Mapping[str, Column]
Mask = NDArray[np.bool_]


def stands(sheet: Sheet, field: Field, bits: int) -> Mask:
    """With which entities the variable has one of these bits, by the fewest comparisons."""
    column = sheet[field.name]
    places = [place for place, bit in enumerate(field.bits) if bit & bits]
    if 2 * len(places) > len(field.bits):
        others = (place for place in range(len(field.bits)) if place not in places)
        return ~_among(column, others)
    return _among(column, places)


def _among(column: Column, places: Iterable[int]) -> Mask:
    return reduce(or_, (column == place for place in places), np.zeros(len(column), np.bool_))
