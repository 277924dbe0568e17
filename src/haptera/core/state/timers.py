"""When to wake up for what: one heap, one time for each key, changed as often as wanted."""

import heapq
from collections.abc import Hashable, Iterator
from typing import Final

# For how many things whose time has come a turn wakes up; the next one begins at once.
WOKEN_MAX: Final = 100

Key = tuple[Hashable, ...]


class Timers:
    """Times by key. Setting a key again replaces its time; the heap forgets lazily."""

    def __init__(self) -> None:
        self._at: dict[Key, int] = {}
        self._heap: list[tuple[int, int, Key]] = []
        self._count = 0

    def set(self, key: Key, at: int) -> None:
        if self._at.get(key) != at:
            self._at[key] = at
            self._count += 1  # ties go by the order in which they were set
            heapq.heappush(self._heap, (at, self._count, key))

    def soonest(self, key: Key, at: int) -> None:
        """Set the key's time unless it is due earlier already."""
        if self._at.get(key, at) >= at:
            self.set(key, at)

    def drop(self, key: Key) -> None:
        self._at.pop(key, None)

    def due(self, now: int) -> Iterator[Key]:
        """Take the keys whose time has come, earliest first."""
        while self._heap and self._heap[0][0] <= now:
            at, _, key = heapq.heappop(self._heap)
            if self._at.get(key) == at:
                del self._at[key]
                yield key

    def next(self) -> int | None:
        """The earliest time set, None when there is none."""
        while self._heap and self._at.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
