"""An LRU cache bounded by the number and the total size of its values."""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class SizedLRU(Generic[Key, Value]):
    """So many values at the most, which together have no more than this size.

    What was not asked for the longest is let go of first; the last one asked for is never.
    """

    def __init__(self, count_max: int, size_max: int, size_of: Callable[[Value], int]) -> None:
        self._count_max = count_max
        self._size_max = size_max
        self._size_of = size_of
        self._kept: dict[Key, tuple[Value, int]] = {}
        self._size = 0

    def get(self, key: Key, work_out: Callable[[], Value]) -> Value:
        """The value of this key, worked out if it is not kept."""
        found = self._kept.pop(key, None)
        if found is None:
            value = work_out()
            found = value, self._size_of(value)
            self._size += found[1]
        self._kept[key] = found
        while len(self._kept) > 1 and self._is_too_much():
            _, size = self._kept.pop(next(iter(self._kept)))
            self._size -= size
        return found[0]

    def _is_too_much(self) -> bool:
        return len(self._kept) > self._count_max or self._size > self._size_max
