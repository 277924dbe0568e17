"""Times to wake up: one heap, one time for each key, changed as often as needed."""

import heapq
from collections.abc import Hashable, Iterator
from typing import Final

# For how many things whose time has come a turn wakes up; the next one begins at once.
WOKEN_MAX: Final = 100
# How many that were postponed are moved in the heap at once, which takes about one ms.
MOVED_MAX: Final = 500

Key = tuple[Hashable, ...]


class Timers:
    """Times by key. Setting a key again replaces its time; the heap forgets lazily."""

    def __init__(self) -> None:
        self._at: dict[Key, int] = {}
        self._heap: list[tuple[int, int, Key]] = []
        self._count = 0
        # What is in the heap with an earlier time than it has by now, or had until it was dropped.
        self._postponed: set[Key] = set()

    def set(self, key: Key, at: int) -> None:
        if self._at.get(key) != at:
            self._at[key] = at
            self._push(key, at)

    def postpone(self, key: Key, at: int) -> None:
        """A later time for a key that has one: by far cheaper than to set it, if done often."""
        if self._at.get(key, at) < at:
            self._at[key] = at
            self._postponed.add(key)

    def soonest(self, key: Key, at: int) -> None:
        """Set the key's time unless it is due earlier already."""
        if self._at.get(key, at) >= at:
            self.set(key, at)

    def drop(self, key: Key) -> None:
        self._at.pop(key, None)

    def due(self, now: int) -> Iterator[Key]:
        """Take the keys whose time has come, earliest first.

        Where very many were postponed it ends before the last one: then `next` is not after `now`.
        """
        moved = 0
        while self._heap and self._heap[0][0] <= now and moved < MOVED_MAX:
            at, _, key = heapq.heappop(self._heap)
            if self._at.get(key) == at:
                del self._at[key]
                yield key
            else:
                moved += self._move(key)

    def next(self) -> int | None:
        """The earliest time set, None when there is none; an earlier one where very many move."""
        moved = 0
        while self._heap:
            at, _, key = self._heap[0]
            if self._at.get(key) == at or moved == MOVED_MAX:
                return at
            heapq.heappop(self._heap)
            moved += self._move(key)
        return None

    def _move(self, key: Key) -> bool:
        """What is out of the heap goes to where it was postponed, if it was."""
        if key not in self._postponed:
            return False
        self._postponed.remove(key)
        if key in self._at:
            self._push(key, self._at[key])
        return True

    def _push(self, key: Key, at: int) -> None:
        self._count += 1  # ties go by the order in which they were set
        heapq.heappush(self._heap, (at, self._count, key))
