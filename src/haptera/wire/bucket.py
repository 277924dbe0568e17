"""A token bucket: so many at once, and so many a second after that."""

from functools import cache
from typing import Final

_SECOND_NS: Final = 1_000_000_000


class Bucket:
    """Full at first.

    >>> bucket = Bucket(at_once_max=2, per_s=1)
    >>> [bucket.take(0), bucket.take(0), bucket.take(0), bucket.take(1_000_000_000)]
    [True, True, False, True]
    """

    __slots__ = ("_left_ns", "_most_ns", "_one_ns", "_then")

    def __init__(self, at_once_max: int, per_s: int) -> None:
        self._one_ns, self._most_ns = _filling_ns(at_once_max, per_s)
        self._left_ns = self._most_ns
        self._then = 0

    def take(self, now: int) -> bool:
        """Whether there is one left, which is then taken."""
        self._left_ns = min(self._most_ns, self._left_ns + max(0, now - self._then))
        self._then = now
        if self._left_ns < self._one_ns:
            return False
        self._left_ns -= self._one_ns
        return True


@cache
def _filling_ns(at_once_max: int, per_s: int) -> tuple[int, int]:
    """How long one takes to fill, and all of them, which is exact in whole numbers.

    Very many buckets are alike, and have the same two numbers.
    """
    one_ns = _SECOND_NS // per_s
    return one_ns, at_once_max * one_ns
