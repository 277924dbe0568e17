"""The reports of a parent to the one above it, and the answers to them."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from haptera.client import AsyncClient, calls, find
from haptera.core.engine import Engine
from haptera.core.state.limits import S
from haptera.core.sync.reporter import Reporter
from haptera.daemon.tree.below import Below, SubtreeReport
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.model.events import Event, ReportAnswer, ToldFromAbove
from haptera.runtime.clock import now_ns
from haptera.runtime.over_turns import over_turns
from haptera.runtime.store.sessions import SavedSession
from haptera.sdk.boundary import Boundary

# Changes that come closer together than this are reported together.
EVERY_S: Final = 0.1
REPORT_WITHIN_S: Final = 5.0


class Reporting:
    """The reports of the parent of this name: besides readings, sessions made here or below it."""

    def __init__(
        self,
        name: str,
        engine: Engine,
        below: Below,
        deliver: Callable[[Iterable[Event]], None],
    ) -> None:
        self._name = name
        self._engine = engine
        self._below = below
        self._deliver = deliver
        near = engine.neighbours
        assert near.reports is not None, "an agent is no parent"
        self._reporter = Reporter(engine.table, near.charge, near.reports)
        self._log = 0
        self._made: dict[str, SavedSession] = {}
        self._doubted: dict[str, int] = {}
        self._news = asyncio.Event()

    def changed(self, entities: Iterable[EntityId]) -> None:
        """Report these again: what is known of them has changed."""
        self._reporter.changed(entities)
        self._news.set()

    def enrolled(self, session: SavedSession) -> None:
        """A node has a session that was made here, or below: others may have to take it over."""
        self._made[session.peer] = session
        self._news.set()

    def doubted(self, node: str, incarnation: int) -> None:
        """Two have claimed the token of this boot: the parents above have to put it out, too."""
        self._doubted[node] = incarnation
        self._news.set()

    async def run(self, followed: Callable[[], Path | None]) -> None:
        """Report to the parent that is followed, until cancelled."""
        hello_s = self._engine.side.hello_ns / S
        while True:
            lacks = self._engine.safety.exchange.asks.lacks_permits(now_ns())
            try:
                async with asyncio.timeout(min(EVERY_S, hello_s) if lacks else hello_s):
                    await self._news.wait()
            except TimeoutError:
                pass
            self._news.clear()
            if (place := followed()) is not None:
                with Boundary(f"the report to the parent of {place}"):
                    await self._report_to(place)
            await asyncio.sleep(EVERY_S)

    async def _report_to(self, place: Path) -> None:
        found = await over_turns(self._below.parents())
        parents = tuple(one for one in found if one.heard_ms is not None)
        sessions, doubted = tuple(self._made.values()), dict(self._doubted)
        sent_at = now_ns()
        notes = self._engine.requests.notes(sent_at)
        told = self._reporter.draft(sent_at)
        report = SubtreeReport(self._name, *told, sessions, notes, parents, doubted)
        try:
            async with asyncio.timeout(REPORT_WITHIN_S), AsyncClient(find(place).access) as client:
                taken = await client.ask(calls.report(msgspec.msgpack.encode(report)))
        except (HapteraError, TimeoutError, OSError):
            self._reporter.repeat()
            return
        for one in sessions:
            if self._made.get(one.peer) is one:
                del self._made[one.peer]
        for node, incarnation in doubted.items():
            if self._doubted.get(node) == incarnation:
                del self._doubted[node]
        self._heed(taken.answer, sent_at)
        if taken.log != self._log:
            self._log = taken.log
            self._reporter.repeat()
            self._news.set()

    def _heed(self, answer: bytes, sent_at: int) -> None:
        """Hand on what is answered besides; a parent of an earlier version says nothing."""
        try:
            told = msgspec.msgpack.decode(answer, type=ReportAnswer)
        except (ValueError, RecursionError):
            return
        self._deliver([ToldFromAbove(told, sent_at)])
