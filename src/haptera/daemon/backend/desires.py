"""The desired layer as it is stored, and proposals on their way through the engine."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Final

from haptera.controllers import groups
from haptera.core.engine import Engine
from haptera.core.views.query import view
from haptera.daemon.backend.follow_ups import follow_ups
from haptera.model.answers.plan import RADIUS_PERCENT, Plan
from haptera.model.changes import Author, Cause, Change, StoredEntity
from haptera.model.effects import PlanReply, Reply
from haptera.model.entity import EntityId
from haptera.model.events import Considered, Event, Proposed
from haptera.runtime.clock import now_ns, wall_s
from haptera.runtime.over_turns import over_turns
from haptera.runtime.store.optimistic_write import refused

# How long a proposal waits for the disk before its caller hears so.
PROPOSAL_WITHIN_S: Final = 30.0
# So often all that is desired is read over many turns, if it changes meanwhile; then it is in one.
READ_AGAIN_MAX: Final = 3
# The engine itself waits less long for plans; but it may be behind.
PREVIEW_WITHIN_S: Final = 30.0


class EngineDesires:
    """The desired layer of one engine; used in the loop's own thread."""

    def __init__(
        self,
        engine: Engine,
        deliver: Callable[[Iterable[Event]], None],
        epoch: int,
        radius_percent: int = RADIUS_PERCENT,
    ) -> None:
        self._engine = engine
        self._deliver = deliver
        self.epoch = epoch
        self.radius_percent = radius_percent
        self._tickets = count(1)
        self._answers: dict[int, asyncio.Future[Reply | PlanReply]] = {}

    def revision(self) -> int:
        return self._engine.table.revision

    def declared(self, entity: EntityId) -> StoredEntity | None:
        return self._engine.table.declared(entity)

    async def stored(self) -> Sequence[StoredEntity]:
        for _ in range(READ_AGAIN_MAX):
            revision = self.revision()
            found = await over_turns(self._engine.table.storing())
            if self.revision() == revision:
                return found
        return self._engine.table.stored()

    async def propose(
        self, changes: tuple[Change, ...], if_revision: int | None, author: Author
    ) -> Reply:
        ticket = next(self._tickets)
        asked = Proposed(ticket, changes, if_revision, author)
        reply = await self._answer(ticket, asked, PROPOSAL_WITHIN_S)
        if isinstance(reply, Reply):
            return reply
        text = "the disk does not answer; it may still be written"
        return Reply(ticket, None, text, Cause.STORAGE)

    async def preview(self, changes: tuple[Change, ...]) -> Plan:
        ticket, whole = next(self._tickets), (*changes, *self._follow_ups(changes))
        shown = await self._answer(ticket, Considered(ticket, whole), PREVIEW_WITHIN_S)
        assert isinstance(shown, PlanReply), "the engine keeps its own time"
        if shown.plan is None:
            raise refused(shown.refusal, shown.cause or Cause.INVALID)
        return shown.plan

    def _follow_ups(self, changes: tuple[Change, ...]) -> tuple[Change, ...]:
        """Changes that the controller of groups would add; none where it does not run."""
        if groups.controller.name not in self._engine.catalog.controllers():
            return ()
        rows = (row for row in self._engine.table if row.kind.name in groups.KINDS)
        return follow_ups({str(row.id): view(row, now_ns()) for row in rows}, changes, wall_s())

    async def _answer(
        self, ticket: int, asked: Proposed | Considered, within_s: float
    ) -> Reply | PlanReply | None:
        """The answer of the engine; None where it takes too long."""
        answer: asyncio.Future[Reply | PlanReply] = asyncio.get_running_loop().create_future()
        self._answers[ticket] = answer
        self._deliver([asked])
        try:
            async with asyncio.timeout(within_s):
                return await answer
        except TimeoutError:
            return None
        finally:
            self._answers.pop(ticket, None)

    def answered(self, answer: Reply | PlanReply) -> None:
        """The engine answers what was proposed or considered."""
        waiting = self._answers.get(answer.ticket)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)
