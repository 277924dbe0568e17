"""A parent's place in the tree: what parents below report, which parent above it follows."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Final

from haptera.core.engine import Engine
from haptera.daemon.channels.exchange import Exchange
from haptera.daemon.channels.sessions import Sessions
from haptera.daemon.settings import ParentSettings
from haptera.daemon.tree.above import Above, Stores
from haptera.daemon.tree.below import Below
from haptera.daemon.tree.quarantine import quarantine
from haptera.daemon.tree.reporting import Reporting
from haptera.kinds.node import address
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.model.events import Enrolled, Event
from haptera.runtime.store.sessions import SavedSession
from haptera.runtime.store.sqlite_writer import Failure
from haptera.runtime.store.store import Store

_NOBODY: Final[Mapping[str, int]] = {}

_log = logging.getLogger(__name__)


class Tree:
    """The two ends of one parent, whose `sessions` these are; `log` names this process."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        sessions: Sessions,
        desires: Stores,
        deliver: Callable[[Iterable[Event]], None],
        log: int,
    ) -> None:
        self._engine = engine
        self._store = store
        self._sessions = sessions
        self._desires = desires
        self._deliver = deliver
        self.below = Below(engine, deliver, self._adopt_made, self.doubted, log)
        self._above: Above | None = None

    def follow(self, settings: ParentSettings, reach: Callable[[str], None]) -> None:
        """Follow the parents above, where the settings name any."""
        if settings.parent_name is not None:
            name = settings.parent_name
            reporting = Reporting(name, self._engine, self.below, self._deliver)
            self._above = Above(settings, reporting, self._desires, self._take, reach)

    def runs(self, exchange: Exchange) -> list[Coroutine[None, None, None]]:
        """What passes messages on for as long as the parent runs."""
        above = [] if self._above is None else [self._above.run()]
        return [exchange.run(), self.below.watch(), *above]

    def enrolled(self, saved: SavedSession) -> None:
        """A child has a session that was made here: hear it from now on."""
        self._heed(saved)
        if self._above is not None:
            self._above.reporting.enrolled(saved)

    async def doubted(self, node: str, incarnation: int) -> None:
        """Two have claimed the token of this boot of a node: neither is trusted, at any parent."""
        if self._sessions.incarnation(node) != incarnation:
            return  # It has booted since, or was put out.
        try:
            await self._sessions.evict(node)
            if self._above is None:
                await quarantine(self._desires, node)
            else:
                self._above.reporting.doubted(node, incarnation)
        except HapteraError as error:
            _log.error("node %s is not quarantined: %s", node, error)

    def changed(self, entities: Iterable[EntityId]) -> None:
        """Report these again: what is known of them has changed."""
        if self._above is not None:
            self._above.reporting.changed(entities)

    def parents_of(self, node: str) -> tuple[str, ...]:
        """Where the parents are that a node may have."""
        rows = [
            self._engine.table.get(node_id(one))
            for one in self._engine.neighbours.charge.listed(node)
        ]
        addresses = [
            None if row is None else row.desired.attributes.get(address.name) for row in rows
        ]
        return tuple(one for one in addresses if one is not None)

    async def _take(
        self, sessions: Sequence[SavedSession], incarnations: Mapping[str, int]
    ) -> list[SavedSession]:
        """What a parent above knows of nodes that may move here; what it does not know yet."""
        await self._sessions.heed_above(sessions, incarnations)
        await self._adopt(sessions, incarnations)
        return self._sessions.beyond(incarnations)

    async def _adopt_made(self, sessions: Sequence[SavedSession]) -> None:
        """Sessions that parents below made: the parents above have to know of them too."""
        await self._adopt(sessions)
        if self._above is not None:
            for saved in sessions:
                self._above.reporting.enrolled(saved)

    async def _adopt(
        self, sessions: Sequence[SavedSession], counted: Mapping[str, int] = _NOBODY
    ) -> None:
        """Sessions that other parents made: their nodes may move here."""
        news = await asyncio.wrap_future(self._store.adopt(sessions, counted))
        if isinstance(news, Failure):
            _log.warning("sessions of other parents are not kept: %s", news.text)
            return
        for saved in news:
            self._heed(saved)

    def _heed(self, saved: SavedSession) -> None:
        self._sessions.join(saved)
        self._deliver([Enrolled(saved.peer, saved.agreement.incarnation)])
