"""What a goal costs at the least from many states at once: twin of `landmark_heuristic.py`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import or_
from typing import Final

import numpy as np
from numpy.typing import NDArray

from haptera.planner.fleet.packing import Digit, Packed, Packing, Places
from haptera.planner.search.landmark_heuristic import Landmark, LandmarkHeuristic
from haptera.planner.search.projections import Projection
from haptera.planner.search.search_budget import SearchBudget

# No cost of a chain comes near this, and no sum of a cost for each variable overflows.
NEVER: Final = 1 << 24
# Landmarks that are minded, a bit for each.
MINDED_MAX: Final = 64
# Ways in which one block can stand, times the sets of its landmarks.
TABLE_BITS_MAX: Final = 16

Costs = NDArray[np.int32]


class Bounds:
    """The estimate's own bound, from the landmarks that it has met so far; less where it has more.

    What comes before a landmark, and what it costs, is asked of the estimate when a block is first
    found to stand so.
    """

    def __init__(self, packing: Packing, estimate: LandmarkHeuristic) -> None:
        blocks: dict[Projection, list[Landmark]] = {}
        for mark in islice(estimate.landmarks(), MINDED_MAX):
            blocks.setdefault(mark.block, []).append(mark)
        each = (mark for marks in blocks.values() for mark in marks)
        numbers = {mark.bit: number for number, mark in enumerate(each)}
        ask = _Asking(estimate, numbers)
        self._blocks = [
            _BlockTables([one for one in packing.digits if one.field in block.fields], some, ask)
            for block, some in blocks.items()
        ]
        self._ends = np.uint64(ask.numbered(estimate.ends))

    def __call__(self, states: Packed) -> Costs:
        here = [(block, block.standing(states)) for block in self._blocks]
        none = np.zeros(states.shape[1], np.uint64)
        unmet = reduce(or_, (block.unmet[places] for block, places in here), none)
        minded = ahead = unmet & self._ends
        while ahead.any():
            firsts = (table.firsts(at, ahead) for block, at in here for table in block.tables)
            ahead = reduce(or_, firsts) & unmet & ~minded
            minded = minded | ahead
        costs = none.astype(np.int32)
        for block, places in here:
            costs += reduce(np.maximum, (table.costs(places, minded) for table in block.tables))
        return costs


@dataclass(frozen=True)
class _Asking:
    """What is asked of the estimate: its landmarks, each of which is a bit, by numbers."""

    estimate: LandmarkHeuristic
    numbers: Mapping[int, int]

    def ahead(self, mark: Landmark, state: int) -> tuple[float, int]:
        """What a landmark costs from a state of its block, and a bit for each that comes before."""
        cost, before = self.estimate.ahead(mark, state, SearchBudget())
        return cost, self.numbered(before)

    def numbered(self, bits: int) -> int:
        """The same landmarks by numbers, without those that have none."""
        return sum(1 << number for bit, number in self.numbers.items() if bit & bits)


class _BlockTables:
    """A block's landmarks, in tables that are small enough."""

    def __init__(self, digits: list[Digit], marks: list[Landmark], ask: _Asking) -> None:
        self._digits = digits
        bits = sum(digit.width for digit in digits)
        states = dict(_states(digits))
        self.unmet = np.zeros(1 << bits, np.uint64)
        for place, state in states.items():
            self.unmet[place] = sum(1 << ask.numbers[one.bit] for one in marks if state & one.bad)
        some = max(1, TABLE_BITS_MAX - bits)
        each = (marks[first : first + some] for first in range(0, len(marks), some))
        self.tables = [_Table(few, states, bits, ask) for few in each]

    def standing(self, states: Packed) -> Places:
        """How the block stands in each state, as a number."""
        first, *others = self._digits
        standing = first.of(states)
        for digit in others:
            standing = standing << np.uint64(digit.width) | digit.of(states)
        return standing


class _Table:
    """What sets of landmarks cost, and what comes before them, however their block stands."""

    def __init__(
        self, marks: list[Landmark], states: Mapping[int, int], bits: int, ask: _Asking
    ) -> None:
        self._marks = marks
        self._states = states
        self._ask = ask
        self._first, self._count = np.uint64(ask.numbers[marks[0].bit]), np.uint64(len(marks))
        self._costs = np.full(1 << bits + len(marks), -1, np.int32)
        self._firsts = np.zeros(1 << bits + len(marks), np.uint64)

    def costs(self, places: Places, minded: Places) -> Costs:
        """What the farthest of the landmarks that are minded costs."""
        costs: Costs = self._costs[self._known(places, minded)]
        return costs

    def firsts(self, places: Places, ahead: Places) -> Places:
        """What comes before the landmarks that are ahead."""
        firsts: Places = self._firsts[self._known(places, ahead)]
        return firsts

    def _known(self, places: Places, some: Places) -> Places:
        """Where in the tables these stand, all worked out."""
        mine = np.uint64((1 << len(self._marks)) - 1)
        keys = places << self._count | some >> self._first & mine
        new = self._costs[keys] < 0
        if new.any():
            for key in np.unique(keys[new]).tolist():
                self._work_out(key)
        return keys

    def _work_out(self, key: int) -> None:
        state = self._states[key >> len(self._marks)]
        some = [mark for place, mark in enumerate(self._marks) if key >> place & 1]
        each = [self._ask.ahead(mark, state) for mark in some]
        self._costs[key] = min(NEVER, max((cost for cost, _ in each), default=0))
        self._firsts[key] = reduce(or_, (before for _, before in each), 0)


def _states(digits: Sequence[Digit]) -> Iterator[tuple[int, int]]:
    """Each way in which variables can stand: as their numbers joined, and as a state's bits."""
    if not digits:
        yield 0, 0
        return
    *others, last = digits
    for joined, state in _states(others):
        for number, bits in last.ways.items():
            yield joined << last.width | number, state | bits
