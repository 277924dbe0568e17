"""The brake: where many children vanish at once, nothing is disturbed until that is over."""

from collections import deque
from collections.abc import Callable
from typing import Final

from haptera.core.state.limits import S

# Children that fall silent within this time of each other may have one cause.
BRAKE_WINDOW_NS: Final = 30 * S
# More than so many of them, or this share of all, or of one fault group, put the brake on.
BRAKE_CHILDREN_MIN: Final = 10
BRAKE_SHARE: Final = 0.1
BRAKE_GROUP_MIN: Final = 3
BRAKE_GROUP_SHARE: Final = 0.5
# The brake is on until nobody has fallen silent for so long.
BRAKE_NS: Final = 300 * S

LOST_MAX: Final = 10_000


class Brake:
    """Counts the children that were lost lately; `size` tells how many a group has (None: all)."""

    def __init__(self, size: Callable[[str | None], int]) -> None:
        self._size = size
        self._lost: deque[tuple[int, str, str | None]] = deque(maxlen=LOST_MAX)
        self._until = 0
        self._text = ""

    def lost(self, now: int, node: str, group: str | None) -> None:
        """This child has fallen silent, and nobody here has switched it off."""
        while self._lost and self._lost[0][0] < now - BRAKE_WINDOW_NS:
            self._lost.popleft()
        self._lost.append((now, node, group))
        if text := self._too_many(group):
            self._text = text
            self._until = now + BRAKE_NS
        elif now < self._until:
            self._until = now + BRAKE_NS

    def release(self) -> None:
        """A person has seen what happened, and lets it go on."""
        self._lost.clear()
        self._until = 0

    def on(self, now: int) -> str | None:
        """Why nothing may be disturbed now."""
        return self._text if now < self._until else None

    def until(self) -> int:
        return self._until

    def _too_many(self, group: str | None) -> str | None:
        nodes = {node for _, node, _ in self._lost}
        everyone = self._size(None)
        within = f"within {BRAKE_WINDOW_NS // S} s"
        if len(nodes) > max(BRAKE_CHILDREN_MIN, BRAKE_SHARE * everyone):
            return f"{len(nodes)} of {everyone} nodes fell silent {within}"
        if group is None:
            return None
        near = {node for _, node, its in self._lost if its == group}
        size = self._size(group)
        if len(near) >= BRAKE_GROUP_MIN and len(near) > BRAKE_GROUP_SHARE * size:
            return f"{len(near)} of {size} nodes of {group} fell silent {within}"
        return None
