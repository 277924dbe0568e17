"""The history of a parent: from its store, and from the event log beside it."""

from functools import partial
from pathlib import Path

from haptera.core.desired.desired_at import desired_before
from haptera.daemon.backend.desires import EngineDesires
from haptera.model.answers.past import Happened, PastView
from haptera.model.entity import EntityId
from haptera.runtime.reading_threads import in_reading_thread
from haptera.runtime.store import event_log_reader as event_log
from haptera.runtime.store.store import Store


class StoreRecords:
    """`history` is the folder of the event log."""

    def __init__(self, store: Store, history: Path, desires: EngineDesires) -> None:
        self._store = store
        self._history = history
        self._desires = desires
        # What is asked of these is theirs to answer.
        self.past, self.written, self.deeds = store.past, store.written, store.deeds
        self.happened_since = partial(event_log.happenings_since, history)

    async def at(self, chosen: event_log.Chosen, at_s: float) -> list[PastView]:
        """The state of the chosen entities at a time."""
        stored = await self._desires.stored()
        # Nothing has come in between: it is of this revision.
        revision = self._desires.revision()
        now = [one for one in stored if chosen(one.entity)]

        def read() -> list[PastView]:
            since = self._store.changed_since(chosen, at_s, revision)
            return event_log.past_views(
                desired_before(now, since), event_log.known_at(self._history, chosen, at_s)
            )

        return await in_reading_thread(read)  # Files are read.

    def happened(self, chosen: event_log.Chosen, count_max: int) -> list[Happened]:
        return event_log.last_happenings(self._history, chosen, count_max=count_max)

    def note(self, who: str, what: str, entity: EntityId | None = None) -> None:
        self._store.note(who, what, entity)
