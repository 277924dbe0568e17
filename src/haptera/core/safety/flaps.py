"""A node that comes and goes is left alone: nothing is disturbed on it until it has held still."""

from collections import deque
from typing import Final

from haptera.core.state.limits import S

# A node that falls silent more often than this within so long flaps.
FLAPS_MAX: Final = 3
FLAPS_WITHIN_NS: Final = 600 * S
# It does so until it has not fallen silent for so long.
STEADY_NS: Final = 600 * S


class Flaps:
    """When each node was lost lately: as often as counts, and no more."""

    def __init__(self) -> None:
        self._lost: dict[str, deque[int]] = {}
        self._until: dict[str, int] = {}

    def lost(self, now: int, node: str) -> None:
        """This node has fallen silent, and nobody here has switched it off."""
        lately = self._lost.setdefault(node, deque(maxlen=FLAPS_MAX + 1))
        lately.append(now)
        often = len(lately) > FLAPS_MAX and now - lately[0] <= FLAPS_WITHIN_NS
        if often or now < self.until(node):
            self._until[node] = now + STEADY_NS

    def until(self, node: str) -> int:
        """Until when nothing is disturbed on this node."""
        return self._until.get(node, 0)

    def forgive(self, node: str) -> None:
        """An admin has seen to it."""
        self._lost.pop(node, None)
        self._until.pop(node, None)
