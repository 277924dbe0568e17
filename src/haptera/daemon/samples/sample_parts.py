"""All of a parent that has to do with numbers, put together."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from haptera.core.engine import Engine
from haptera.daemon.samples.sample_board import SampleBoard
from haptera.daemon.samples.sampling import Sampling
from haptera.model.entity import EntityId
from haptera.runtime import clock
from haptera.runtime.samples.limits import SampleLimits
from haptera.runtime.samples.sample_store import SampleStore

SAMPLES_FOLDER: Final = "samples"


class SampleParts:
    """The board, the files, and the rounds of this parent's own modules."""

    def __init__(self, engine: Engine, home: Path, limits: SampleLimits) -> None:
        self._store = SampleStore(home / SAMPLES_FOLDER, limits, clock.wall_s)
        self.board = SampleBoard(engine, self._store, clock.wall_s)
        engine.table.measured = self.board.measured_last
        self.sampling = Sampling(engine, self.board.add)

    def changed(self, entities: Iterable[EntityId]) -> None:
        """Follow a change of these entities."""
        self.sampling.changed(entities)
        self.board.heed(entities)

    def dropped(self) -> Counter[str]:
        """The number of measurements dropped so far, by reason."""
        return self._store.counts + self.board.counts + self.sampling.counts

    def close(self) -> None:
        self._store.close()
