"""Which module processes run: all of this side's, started again when they die."""

from collections.abc import Iterable

from haptera.core.limits import BACKOFF_NS, SERVED_WELL_NS
from haptera.core.timers import Timers
from haptera.core.turn import Turn
from haptera.model.effects import Start


class Supervisor:
    """The modules of this side, and since when each has been serving."""

    def __init__(self, modules: Iterable[str], timers: Timers) -> None:
        self._timers = timers
        self._serving_since: dict[str, int | None] = dict.fromkeys(modules)

    def start_all(self, turn: Turn) -> None:
        turn.effects.extend(Start(module) for module in sorted(self._serving_since))

    def start(self, turn: Turn, module: str) -> None:
        """The back-off of a module that died early is over."""
        turn.effects.append(Start(module))

    def ready(self, module: str) -> bool:
        return self._serving_since.get(module) is not None

    def serves(self, module: str, now: int) -> None:
        self._serving_since[module] = now

    def exited(self, turn: Turn, module: str) -> None:
        """Start it again: at once if it had served well, else after the back-off."""
        since = self._serving_since[module]
        self._serving_since[module] = None
        if since is not None and turn.now - since >= SERVED_WELL_NS:
            turn.effects.append(Start(module))
        else:
            self._timers.set(("start", module), turn.now + BACKOFF_NS)
