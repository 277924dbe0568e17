"""How long parts usually take, so that people see which one takes long now."""

from collections import deque
from collections.abc import Iterator
from statistics import median
from typing import Final

# Durations remembered of each part, the last ones.
LAST_MAX: Final = 16


class Usual:
    """The median of the last durations of each part, by its path; forgotten by a restart."""

    def __init__(self) -> None:
        self._took_ns: dict[str, deque[int]] = {}

    def took(self, path: str, took_ns: int) -> None:
        """A part came to its end: a step's outcome was read, or a look was answered."""
        self._took_ns.setdefault(path, deque(maxlen=LAST_MAX)).append(took_ns)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Each part, and how long it usually takes, in ns."""
        return ((path, int(median(took))) for path, took in self._took_ns.items())

    def of(self, path: str) -> int | None:
        """How long it usually takes, in ns; None where it never came to its end yet."""
        took = self._took_ns.get(path)
        return None if took is None else int(median(took))
