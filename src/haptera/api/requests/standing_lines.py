"""Lines of the audit that stand for all that is alike for a day."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from haptera.model.entity import EntityId

# Who follows a console asks each second, and a monitor reports as often: they must not push out of
# the audit what others changed.
STANDS_S: Final = 86_400.0
# Lines that are remembered; who is beyond gets a line more.
LINES_MAX: Final = 10_000


class StandingLines:
    """Remembers who has a line about which entity; a new process knows of none."""

    def __init__(self, wall_s: Callable[[], float]) -> None:
        self._wall_s = wall_s
        self._since: OrderedDict[tuple[str, EntityId | None], float] = OrderedDict()

    def has(self, who: str, about: EntityId | None) -> bool:
        """Whether a line stands for what they do now; about None, it is of several at once."""
        since = self._since.get((who, about))
        return since is not None and since <= self._wall_s() < since + STANDS_S

    def add(self, who: str, about: EntityId | None) -> None:
        """A line is written now."""
        self._since[who, about] = self._wall_s()
        self._since.move_to_end((who, about))
        if len(self._since) > LINES_MAX:
            self._since.popitem(last=False)
