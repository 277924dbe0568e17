"""Readings of programs outside haptera, which go to the engine once the audit has them."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from haptera.api.requests.standing_lines import StandingLines
from haptera.core.engine import Engine
from haptera.model.events import Event, ReadingReported
from haptera.runtime.clock import wall_s
from haptera.runtime.store.store import Store, kept

# So much of the request that a line in the audit begins with is in it.
TOLD_CHARS_MAX: Final = 500


class ParentReadings:
    """The engine checks them first."""

    def __init__(
        self, engine: Engine, store: Store, deliver: Callable[[Iterable[Event]], None]
    ) -> None:
        self._store = store
        self._deliver = deliver
        self._lines = StandingLines(wall_s)
        self.check_reading = engine.answers.reported.check

    async def observe(self, readings: Sequence[ReadingReported], who: str) -> None:
        entities = {one.entity for one in readings}
        about = entities.pop() if len(entities) == 1 else None
        if not self._lines.has(who, about):
            told = ", ".join(f"{one.entity} {one.variable} {one.value}" for one in readings)
            what = f"{readings[0].by}: {told}"[:TOLD_CHARS_MAX]
            kept(await asyncio.wrap_future(self._store.note(who, what, about)))
            self._lines.add(who, about)
        self._deliver(readings)
