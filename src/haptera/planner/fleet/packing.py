"""States of one search, many at once: each variable's place as a few bits in words of 64.

The twin of `bitstate.py` and `successors.py`, which say the same of one state in plain Python.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import and_
from typing import Final

import numpy as np
from numpy.typing import NDArray

from haptera.planner.domain.bitstate import Field, Support
from haptera.planner.domain.successors import OperatorRow
from haptera.planner.domain.task import Task

# A row for each word of 64 bits, a column for each state.
Packed = NDArray[np.uint64]
Places = NDArray[np.uint64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]

WORD_BITS: Final = 64
ALL: Final = (1 << WORD_BITS) - 1
# Bits that are looked up together.
LOOKUP_BITS_MAX: Final = 10


@dataclass(frozen=True)
class Digit:
    """A variable's bits of a word: which of its field's bits is set, and whether it is touched.

    `touched` is 0 where no memory is doubted.
    """

    field: Field
    touched: int
    word: int
    shift: int

    @cached_property
    def places(self) -> int:
        """The bits that say which bit of the field is set; whether it is touched is above them."""
        return (len(self.field.bits) - 1).bit_length()

    @cached_property
    def width(self) -> int:
        return self.places + bool(self.touched)

    @property
    def over(self) -> int:
        """The bit after its last one."""
        return self.shift + self.width

    @cached_property
    def ways(self) -> dict[int, int]:
        """For each number that it can be, the state's bits."""
        ways = dict(enumerate(self.field.bits))
        if self.touched:
            above = 1 << self.places
            ways |= {above | place: bit | self.touched for place, bit in ways.items()}
        return ways

    def of(self, states: Packed) -> Places:
        return _read(states, self.word, self.shift, self.over)

    def put(self, bits: int) -> int:
        """Such bits of a state, in the word."""
        place = self.field.bits.index(bits & self.field.whole)
        return (place | bool(bits & self.touched) << self.places) << self.shift

    def among(self, bits: int) -> Mask:
        """For each number that it can be, whether it stands for one of these bits."""
        mask = np.zeros(1 << self.width, np.bool_)
        for number, way in self.ways.items():
            mask[number] = bool(way & bits)
        return mask


class Packing:
    """How the states of a task are packed, moved on and stripped."""

    def __init__(self, task: Task) -> None:
        self.digits = tuple(_digits(task))
        self.words = self.digits[-1].word + 1
        self._rows = len(task.rows)
        self._openings = [_opening(group, task.rows) for group in _groups(self.digits)]
        self._keep, self._put = self._effects(task.rows)
        self._losses = [
            _Loss(one, upset, self.digits)
            for one in task.grounds
            if (upset := np.array([one in row[4] for row in task.rows], np.bool_)).any()
        ]
        self._wanted = [
            (digit, digit.among(task.wanted))
            for digit in self.digits
            if digit.field.whole & task.wanted
        ]

    def pack(self, state: int) -> Packed:
        words = [0] * self.words
        for digit in self.digits:
            words[digit.word] |= digit.put(state)
        return np.array(words, np.uint64).reshape(-1, 1)

    def meeting(self, states: Packed) -> Mask:
        """Which states meet the goal."""
        return reduce(and_, (wanted[digit.of(states)] for digit, wanted in self._wanted))

    def onward(self, states: Packed) -> tuple[Indices, Indices, Packed]:
        """Which of the states can go on, by the rows of which numbers, and where each leads."""
        opened = reduce(and_, (table[_read(states, *at)] for at, table in self._openings))
        bits = np.unpackbits(opened, axis=1, count=self._rows, bitorder="little")
        sources, rows = bits.nonzero()
        after = states[:, sources] & self._keep[:, rows] | self._put[:, rows]
        for loss in self._losses:
            loss.take(after, rows)
        return sources, rows, after

    def _effects(self, rows: Sequence[OperatorRow]) -> tuple[Packed, Packed]:
        keep = [[ALL] * len(rows) for _ in range(self.words)]
        put = [[0] * len(rows) for _ in range(self.words)]
        for digit in self.digits:
            place = (1 << digit.places) - 1 << digit.shift
            for number, row in enumerate(rows):
                if row[2] & digit.field.whole:
                    keep[digit.word][number] &= ~place
                    put[digit.word][number] |= digit.put(row[2])
        return np.array(keep, np.uint64), np.array(put, np.uint64)


class _Loss:
    """What some rows can take the grounds of: it is remembered then (strip)."""

    def __init__(self, grounds: Support, upset: Mask, digits: Iterable[Digit]) -> None:
        self._upset = upset
        self._digit = next(one for one in digits if one.field.name == grounds.variable)
        self._known = self._digit.among(grounds.known)
        self._further = np.uint64(self._digit.field.width << self._digit.shift)
        self._looks = [
            (
                self._digit.among(yields),
                [(one, ~one.among(forbidden)) for one in digits if one.field.span & forbidden],
            )
            for yields, forbidden in grounds.looks
        ]

    def take(self, states: Packed, rows: Indices) -> None:
        """From the states that these rows have led to."""
        (some,) = self._upset[rows].nonzero()
        if not len(some):
            return
        here = states[:, some]
        held = self._digit.of(here)
        lost = self._known[held]
        for yields, conditions in self._looks:
            lost &= ~reduce(and_, (good[one.of(here)] for one, good in conditions), yields[held])
        states[self._digit.word, some[lost]] += self._further


def _read(states: Packed, word: int, begin: int, end: int) -> Places:
    places: Places = states[word] >> np.uint64(begin) & np.uint64((1 << end - begin) - 1)
    return places


def _digits(task: Task) -> Iterator[Digit]:
    word = over = 0
    for field in task.fields:
        digit = Digit(field, field.touched & task.within, word, over)
        if digit.over > WORD_BITS:
            digit = replace(digit, word=word + 1, shift=0)
        yield digit
        word, over = digit.word, digit.over


def _groups(digits: Iterable[Digit]) -> Iterator[list[Digit]]:
    """Digits of one word that are looked up together."""
    group: list[Digit] = []
    for digit in digits:
        if group and (digit.word > group[0].word or digit.over - group[0].shift > LOOKUP_BITS_MAX):
            yield group
            group = []
        group.append(digit)
    yield group


def _opening(
    group: Sequence[Digit], rows: Sequence[OperatorRow]
) -> tuple[tuple[int, int, int], NDArray[np.uint8]]:
    """Where some digits stand, and for each way in which they can, a bit for each row left open."""
    first, last = group[0], group[-1]
    places = np.arange(1 << last.over - first.shift)
    opened = np.ones((len(places), len(rows)), np.bool_)
    for digit in group:
        here = places >> digit.shift - first.shift & (1 << digit.width) - 1
        for number, row in enumerate(rows):
            if row[0] & digit.field.span:
                opened[:, number] &= ~digit.among(row[0])[here]
    table = np.packbits(opened, axis=1, bitorder="little")
    return (first.word, first.shift, last.over), table
