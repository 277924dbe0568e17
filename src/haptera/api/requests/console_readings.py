"""The readers of nodes' consoles, for the audit: once a day each."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from haptera.model.entity import EntityId

# Who follows a console asks each second, and readers must not push out of the audit what others
# changed: a line stands for all that its reader is sent of this console for so long.
STANDS_S: Final = 86_400.0
# Readers and nodes that are distinguished; those beyond get a line more.
READINGS_MAX: Final = 10_000


class ConsoleReadings:
    """Notes each reading that no line in the audit stands for yet; a new process knows of none."""

    def __init__(
        self, note: Callable[[str, str, EntityId], None], wall_s: Callable[[], float]
    ) -> None:
        self._note = note
        self._wall_s = wall_s
        self._noted: OrderedDict[tuple[str, EntityId], float] = OrderedDict()

    def read(self, who: str, node: EntityId) -> None:
        """They are sent the console of this node."""
        now = self._wall_s()
        at = self._noted.get((who, node))
        if at is not None and at <= now < at + STANDS_S:
            return
        self._noted[who, node] = now
        self._noted.move_to_end((who, node))
        if len(self._noted) > READINGS_MAX:
            self._noted.popitem(last=False)
        self._note(who, f"console {node}", node)
