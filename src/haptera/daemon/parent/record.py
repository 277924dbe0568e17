"""What a parent writes down of what happens to its entities."""

from collections.abc import Iterable
from pathlib import Path

from haptera.core.state.table import EntityTable
from haptera.core.views.chronicle import Chronicle
from haptera.model.entity import EntityId
from haptera.runtime import clock
from haptera.runtime.store.event_log_writer import Recorder


class EventRecorder:
    """Follows the entities that changed, and hands on what happened to them."""

    def __init__(self, table: EntityTable, folder: Path) -> None:
        self._chronicle = Chronicle(table)
        self._recorder = recorder = Recorder(folder)
        self._recoveries = recorder.recoveries
        # The engine's first turns announce each entity that was stored.
        recorder.note([self._chronicle.begin(clock.now_ns(), clock.wall_offset_ns())])

    def changed(self, entities: Iterable[EntityId]) -> None:
        """These changed; all is recorded anew where something was lost before."""
        now, offset_ns = clock.now_ns(), clock.wall_offset_ns()
        if self._recoveries != self._recorder.recoveries:
            self._recoveries = self._recorder.recoveries
            happened = self._chronicle.begin_again(now, offset_ns)
        else:
            happened = self._chronicle.follow(entities, now, offset_ns)
        if happened:
            self._recorder.note(happened)

    def close(self) -> None:
        self._recorder.close()
