"""States that were come to, each with a number: a hash table that takes in many at once."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from haptera.planner.fleet.packing import WORD_BITS, Packed

Numbers = NDArray[np.int32]
Slots = NDArray[np.int64]

# Slots for each state at the least, so that it is seldom that one is taken.
SPACIOUS: Final = 2
SLOTS_AT_FIRST: Final = 1 << 12
# Knuth's multiplicative hashing (The Art of Computer Programming, volume 3, section 6.4): 2^64 over
# the golden ratio, made odd.
MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)


class Census:
    """Numbers from 0 on, in the order of coming."""

    def __init__(self, words: int) -> None:
        self.count = 0
        self._states: Packed = np.zeros((words, SLOTS_AT_FIRST // SPACIOUS), np.uint64)
        self._slots: Numbers = np.full(SLOTS_AT_FIRST, -1, np.int32)

    def states(self, numbers: Numbers) -> Packed:
        """The states that have these numbers."""
        return self._states[:, numbers]

    def number(self, states: Packed) -> Numbers:
        """The number of each state; those that were not there have the next ones now."""
        self._make_room(states.shape[1])
        found = np.full(states.shape[1], -1, np.int32)
        left, slots = np.arange(states.shape[1]), self._slots_for(states)
        while len(left):
            self._settle(left, slots, states)
            here = self._slots[slots]
            same = (self._states[:, here] == states[:, left]).all(axis=0)
            found[left[same]] = here[same]
            left, slots = left[~same], slots[~same] + 1 & len(self._slots) - 1
        return found

    def _settle(self, left: NDArray[np.intp], slots: Slots, states: Packed) -> None:
        """Give the slots that are empty to states that look there, one to each."""
        (empty,) = (self._slots[slots] < 0).nonzero()
        if not len(empty):
            return
        self._slots[slots[empty]] = empty  # Of several the last stays.
        settled = empty[self._slots[slots[empty]] == empty]
        over = self.count + len(settled)
        self._slots[slots[settled]] = np.arange(self.count, over)
        self._states[:, self.count : over] = states[:, left[settled]]
        self.count = over

    def _make_room(self, more: int) -> None:
        """For so many states, should none of them be known."""
        if self.count + more <= len(self._slots) // SPACIOUS:
            return
        size = 1 << (SPACIOUS * (self.count + more) - 1).bit_length()
        self._states = np.pad(self._states, ((0, 0), (0, size // SPACIOUS - self._states.shape[1])))
        self._slots = np.full(size, -1, np.int32)
        left = np.arange(self.count)
        slots = self._slots_for(self._states[:, left])
        while len(left):
            empty = self._slots[slots] < 0
            self._slots[slots[empty]] = left[empty]
            unsettled = self._slots[slots] != left
            left, slots = left[unsettled], slots[unsettled] + 1 & size - 1

    def _slots_for(self, states: Packed) -> Slots:
        mixed = states[0] * MULTIPLIER
        for word in states[1:]:
            mixed = (mixed ^ word) * MULTIPLIER
        bits = (len(self._slots) - 1).bit_length()
        slots: Slots = (mixed >> np.uint64(WORD_BITS - bits)).astype(np.int64)
        return slots
