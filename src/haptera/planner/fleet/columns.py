"""Many entities of a class, each in its state: what comes next for all, in one pass.

The twin of `planner/fleet/states.py`, which says the same in plain Python.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from haptera.planner.domain.bitstate import Field, Support
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.task import Memory
from haptera.planner.fleet.levels import MET, UNKNOWN, WALLED, levels_of
from haptera.planner.fleet.masks import Column, Mask, stands
from haptera.planner.fleet.states import number, numbering
from haptera.planner.planner import next_part
from haptera.planner.search.factors import factors_of
from haptera.planner.search.search_budget import EXPANSIONS_MAX
from haptera.planner.search.serial_subgoals import End

Numbers = NDArray[np.int32]
# Ways in which a variable can stand that fit into one byte.
BYTE_PLACES_MAX: Final = 256


class Columns:
    """Words of entities that have the same class, a column for each variable."""

    def __init__(self, domain: Domain, words: Iterable[int]) -> None:
        self._domain = domain
        self._fields = tuple(domain.fields.values())
        packed = list(words)
        self._count = len(packed)
        self.sheet = _columns(self._fields, packed)

    def words(self) -> list[int]:
        return _words(self._fields, np.stack([*self.sheet.values()]))

    def strip(self) -> None:
        """Remember what is known but cannot be looked at."""
        for one in self._domain.grounds:
            field = self._domain.fields[one.variable]
            lost = stands(self.sheet, field, field.known) & ~self._grounded(field, one)
            column = self.sheet[field.name]
            column[lost] += field.width

    def next_parts(self, goal: Mapping[str, str], *, budget: int = EXPANSIONS_MAX) -> Numbers:
        """The number of the move that comes next for each, or its end; words are stripped."""
        found = self.tabled(goal)
        unsure = np.flatnonzero(found == End.UNKNOWN)
        found[unsure] = self._planned(unsure, goal, budget)
        return found

    def tabled(self, goal: Mapping[str, str]) -> Numbers:
        """The same by columns alone: UNKNOWN with those of which no table tells."""
        levels = self._levels(goal, Memory.TRUSTED)
        doubtful = (levels == WALLED) & self._doubtful(goal)
        if doubtful.any():
            levels[doubtful] = self._levels(goal, Memory.DOUBTED)[doubtful]
        levels[levels == UNKNOWN] = End.UNKNOWN
        levels[levels == MET] = End.MET
        return levels

    def _levels(self, goal: Mapping[str, str], memory: Memory) -> Numbers:
        """The lowest level of all factors."""
        levels = np.full(self._count, MET, np.int32)
        for table in levels_of(self._domain, factors_of(self._domain, goal, memory)):
            np.minimum(levels, table.read(self.sheet), out=levels)
        return levels

    def _grounded(self, field: Field, grounds: Support) -> Mask:
        """With which entities a look that can yield what is known has what it requires."""
        grounded = self._nowhere()
        for yields, forbidden in grounds.looks:
            mask = stands(self.sheet, field, yields)
            for other in self._fields:
                if other.whole & forbidden:
                    mask &= ~stands(self.sheet, other, forbidden)
            grounded |= mask
        return grounded

    def _doubtful(self, goal: Mapping[str, str]) -> Mask:
        """With which entities memory may be doubted where trusting it leads nowhere."""
        within = factors_of(self._domain, goal, Memory.DOUBTED).whole.within
        fields = (field for field in self._fields if field.touched & within)
        each = (stands(self.sheet, one, one.remembered) for one in fields)
        return reduce(or_, each, self._nowhere())

    def _nowhere(self) -> Mask:
        return np.zeros(self._count, np.bool_)

    def _planned(self, places: NDArray[np.intp], goal: Mapping[str, str], budget: int) -> Numbers:
        """What no table tells, planned once for entities that stand alike."""
        sheet = np.stack([column[places] for column in self.sheet.values()])
        alike, which = np.unique(sheet, axis=1, return_inverse=True)
        words, numbers = _words(self._fields, alike), numbering(self._domain)
        found = [
            number(next_part(self._domain, word, goal, expansions_max=budget), numbers)
            for word in words
        ]
        planned: Numbers = np.array(found, np.int32)[which.reshape(-1)]
        return planned


def _columns(fields: Sequence[Field], words: Sequence[int]) -> dict[str, Column]:
    bits = _bits(sum(len(field.bits) for field in fields), words)
    wide = max(len(field.bits) for field in fields) > BYTE_PLACES_MAX
    columns: dict[str, Column] = {}
    lowest = 0
    for field in fields:
        highest = lowest + len(field.bits)
        column = bits[:, lowest:highest].argmax(axis=1)
        columns[field.name] = column.astype(np.uint16 if wide else np.uint8)
        lowest = highest
    return columns


def _bits(count: int, words: Sequence[int]) -> NDArray[np.uint8]:
    size = (count + 7) // 8
    packed = b"".join(word.to_bytes(size, "little") for word in words)
    table = np.frombuffer(packed, np.uint8).reshape(len(words), size)
    return np.unpackbits(table, axis=1, bitorder="little")


def _words(fields: Sequence[Field], sheet: NDArray[np.unsignedinteger[Any]]) -> list[int]:
    words = [0] * sheet.shape[1]
    for field, column in zip(fields, sheet, strict=True):
        words = [
            word | field.bits[place] for word, place in zip(words, column.tolist(), strict=True)
        ]
    return words
