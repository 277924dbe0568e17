"""Usual durations of parts, so that people see which one takes long now."""

from collections import deque
from collections.abc import Iterator
from statistics import median
from typing import Final

from haptera.core.state.limits import MS

# Durations remembered of each part, the last ones; and nodes whose word on it is.
LAST_MAX: Final = 16
NODES_MAX: Final = 16
# A measure that differs from another by more than half of it, and by more than this, is sent anew.
NOTABLE_NS: Final = 50 * MS


class Usual:
    """The median of the last durations of each part, by its path; forgotten by a restart.

    Of what runs on nodes a parent has their word, and takes the median of the last ones.
    """

    def __init__(self) -> None:
        self._took_ns: dict[str, deque[int]] = {}
        self._told_ns: dict[str, dict[str, int]] = {}

    def took(self, path: str, took_ns: int) -> None:
        """A part came to its end: a step's outcome was read, or a look was answered."""
        self._took_ns.setdefault(path, deque(maxlen=LAST_MAX)).append(took_ns)

    def reported(self, path: str, node: str, usual_ns: int) -> None:
        """This is how long a part usually takes on a node."""
        told = self._told_ns.setdefault(path, {})
        told.pop(node, None)
        told[node] = usual_ns
        if len(told) > NODES_MAX:
            del told[next(iter(told))]

    def __iter__(self) -> Iterator[tuple[str, int]]:
        """Each part, and how long it usually takes, in ns."""
        for path in (*self._took_ns, *(self._told_ns.keys() - self._took_ns.keys())):
            if (usual_ns := self.of(path)) is not None:
                yield path, usual_ns

    def of(self, path: str) -> int | None:
        """How long it usually takes, in ns; None where it never came to its end yet."""
        took = self._took_ns.get(path) or [*self._told_ns.get(path, {}).values()]
        return int(median(took)) if took else None


def is_notable(told_ns: int, usual_ns: int) -> bool:
    """Whether a measure differs so much from what was sent that it is sent anew."""
    return abs(usual_ns - told_ns) > max(NOTABLE_NS, told_ns // 2)
