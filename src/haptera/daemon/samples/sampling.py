"""Has the samplers of each module that serves measure their entities, beside the engine.

Which entities there are, the engine's table says; nothing of it is changed, no turn is spent.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from haptera.core.engine import Engine
from haptera.core.modules.catalog import attributes
from haptera.core.state.row import EntityState
from haptera.model.effects import Call, Cancel, Work
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Event, Exited, Ready
from haptera.model.parts import Sampler
from haptera.model.reading import Series, fitting
from haptera.model.samples import SAMPLE_AGE_S_MAX
from haptera.runtime.clock import now_ns
from haptera.runtime.processes.module_frames import Sampled

# The ids of calls that measure are beyond all that the engine counts to.
IDS_FROM: Final = 1 << 48
# Entities looked at between two turns of the loop.
SETTLED_AT_ONCE: Final = 50
# A failure is logged again if it differs; else once in this time for each sampler.
SAID_AGAIN_S: Final = 600.0
_S: Final = 1_000_000_000

_log = logging.getLogger(__name__)

# A module, and the number of one of its processes.
Process = tuple[str, int]
# Its entity, its age in seconds, and its values.
Taken = Callable[[EntityId, float, dict[Series, float]], None]


@dataclass(slots=True)
class _Rounds:
    """One sampler that measures one entity, by a call that goes on."""

    call: int
    process: Process
    sampler: Sampler
    entity: EntityId
    attributes: Mapping[str, str]
    last_at: int = 0


class Sampling:
    """The rounds of all samplers on this side; needs a running loop.

    `counts` says what was dropped, and why.
    """

    def __init__(self, engine: Engine, taken: Taken) -> None:
        self._engine = engine
        self._taken = taken
        self._serving: dict[Process, tuple[Sampler, ...]] = {}
        self._rounds: dict[int, _Rounds] = {}
        self._by_key: dict[tuple[Process, str, EntityId], _Rounds] = {}
        self._unsettled: deque[tuple[Process, EntityId]] = deque()
        self._arrived = asyncio.Event()
        self._next = IDS_FROM
        self._said: dict[str, tuple[str, float]] = {}
        self.counts: Counter[str] = Counter()

    def ask(self, call: Callable[[Call], None], cancel: Callable[[Cancel], None]) -> None:
        """Call modules by these, before any of them serves."""
        self._call, self._cancel = call, cancel

    async def run(self) -> None:
        """Begin and end rounds as modules and entities come and go, until cancelled."""
        while True:
            await self._arrived.wait()
            self.settle()
            await asyncio.sleep(0)

    def settle(self) -> None:
        """Begin and end the rounds of some of the queued entities."""
        for _ in range(min(SETTLED_AT_ONCE, len(self._unsettled))):
            self._settle(*self._unsettled.popleft())
        if not self._unsettled:
            self._arrived.clear()

    def beside(self, deliver: Callable[[list[Event]], None]) -> Callable[[list[Event]], None]:
        """A receiver that passes module events on, and tracks which modules serve or are gone."""

        def both(events: list[Event]) -> None:
            self._heard(events)
            deliver(events)

        return both

    def _heard(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, Ready):
                manifest = event.manifest or self._engine.catalog.manifests.get(event.module)
                if manifest is not None and manifest.samplers:
                    self._begin((event.module, event.process), manifest.samplers)
            elif isinstance(event, Exited):
                self._end((event.module, event.process))

    def changed(self, entities: Iterable[EntityId]) -> None:
        """Queue these entities, which may have changed, for `settle`."""
        if self._serving:
            self._unsettled.extend((each, one) for one in entities for each in self._serving)
            self._arrived.set()

    def sampled(self, told: Sampled) -> None:
        """Receive the result of a module's round, or the reason for its failure."""
        rounds = self._rounds.get(told.call)
        if rounds is None:
            return
        if told.failure is not None:
            self.counts["round failed"] += 1
            self._say(rounds.sampler.path, told.failure)
            return
        age_ns = now_ns() - told.at_ns
        if not 0 <= age_ns <= SAMPLE_AGE_S_MAX * _S:
            self.counts["out of time"] += len(told.values)
        elif told.at_ns < rounds.last_at + rounds.sampler.every_ms * 500_000:
            self.counts["too often"] += len(told.values)
        else:
            rounds.last_at = told.at_ns
            values = fitting({one.name: one for one in rounds.sampler.readings}, told.values)
            self.counts["not declared, or impossible"] += len(told.values) - len(values)
            if values:
                self._taken(rounds.entity, age_ns / _S, values)

    def _begin(self, process: Process, samplers: tuple[Sampler, ...]) -> None:
        self._serving[process] = samplers
        kinds = {one.kind for one in samplers}
        rows = (row for row in self._engine.table if row.kind.name in kinds)
        self._unsettled.extend((process, row.id) for row in rows)
        self._arrived.set()

    def _end(self, process: Process) -> None:
        if self._serving.pop(process, None) is not None:
            for one in [one for one in self._rounds.values() if one.process == process]:
                self._forget(one)

    def _settle(self, process: Process, entity: EntityId) -> None:
        """Have this process measure an entity, or no longer, or by other attributes."""
        row = self._engine.table.get(entity)
        for sampler in self._serving.get(process, ()):
            if sampler.kind != entity.kind:
                continue
            rounds = self._by_key.get((process, sampler.name, entity))
            wanted = None if row is None else self._attributes(sampler, row)
            if rounds is not None and rounds.attributes != wanted:
                self._forget(rounds)
                self._cancel(Cancel(rounds.call, *process))
                rounds = None
            if rounds is None and wanted is not None and row is not None:
                self._start(process, sampler, row, dict(wanted))

    def _attributes(self, sampler: Sampler, row: EntityState) -> Mapping[str, str] | None:
        """Those that the entity is measured by; None where it is not to be measured here."""
        table, side = self._engine.table, self._engine.side
        here = row.id.node == side.node if side.node is not None else self._keeps(row.id)
        if not here or row.desired.leaving:
            return None
        found = attributes(row, table.node_of(row))
        fits = all(found.get(one.name) in one.values for one in sampler.requires)
        return found if fits else None

    def _keeps(self, entity: EntityId) -> bool:
        return self._engine.neighbours.charge.keeps(entity.node)

    def _start(
        self, process: Process, sampler: Sampler, row: EntityState, given: dict[str, str]
    ) -> None:
        self._next += 1
        rounds = _Rounds(self._next, process, sampler, row.id, given)
        self._rounds[rounds.call] = rounds
        self._by_key[process, sampler.name, row.id] = rounds
        values: dict[str, Any] = {name: one.value for name, one in row.desired.values.items()}
        module, number = process
        call = Call(
            *(rounds.call, Work.SAMPLE, module, sampler.name, row.id),
            *(given, values, row.desired.digest(), None),
            process=number,
        )
        self._call(call)

    def _forget(self, rounds: _Rounds) -> None:
        del self._rounds[rounds.call]
        del self._by_key[rounds.process, rounds.sampler.name, rounds.entity]

    def _say(self, path: str, text: str) -> None:
        now = now_ns() / _S
        said, at = self._said.get(path, ("", 0.0))
        if (text != said and now > at + SAID_AGAIN_S) or not said:
            self._said[path] = text, now
            _log.warning("%s: %s", path, text)


def sample_key(peer: str, kind: str, name: str) -> EntityId:
    """The entity of a peer's measurements: the node itself, or one on it; never another node."""
    return node_id(peer) if kind == "node" else EntityId(kind, name, peer)
