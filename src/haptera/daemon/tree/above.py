"""A parent below another: follows that one's store for its nodes, and reports what it keeps."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Final, Protocol

import msgspec

from haptera.client import AsyncClient, calls, find
from haptera.core.engine import Engine
from haptera.core.sync.relay import changes, nodes_of, relayed
from haptera.core.sync.reporter import Reporter
from haptera.daemon.settings import ParentSettings
from haptera.daemon.tree.below import Below, SubtreeReport
from haptera.daemon.tree.following import Following, keep_beside
from haptera.daemon.tree.replicas import TERM, read_beside
from haptera.model.changes import Author, Change, StoredEntity
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.model.events import Event, ReportAnswer, ToldFromAbove
from haptera.model.token_scope import Scope
from haptera.runtime.clock import now_ns
from haptera.runtime.identity.private import private_directory
from haptera.runtime.identity.sealing import Sealer
from haptera.runtime.over_turns import over_turns
from haptera.runtime.store import changes_sql, sessions_sql
from haptera.runtime.store.feed import Follower
from haptera.runtime.store.optimistic_write import Proposing, write
from haptera.runtime.store.replica import Replica
from haptera.runtime.store.sessions import SavedSession
from haptera.runtime.store.store import STATE_FILE
from haptera.sdk.boundary import Boundary

FOLDER: Final = "above"
ASK_AGAIN_S: Final = 0.3
# Changes that come closer together than this are reported together.
EVERY_S: Final = 0.1
REPORT_WITHIN_S: Final = 5.0
_S: Final = 1_000_000_000

_log = logging.getLogger(__name__)


# Has the sessions of nodes, and how far their incarnations were counted, heeded here; returns the
# sessions that the parent above does not know yet.
Take = Callable[[Sequence[SavedSession], Mapping[str, int]], Awaitable[Sequence[SavedSession]]]


class Stores(Proposing, Protocol):
    """Who takes proposals, and says what is desired now."""

    async def stored(self) -> Sequence[StoredEntity]: ...


class Above:
    """The one of the parents above that is followed now, and what passes between."""

    def __init__(
        self,
        settings: ParentSettings,
        engine: Engine,
        desires: Stores,
        take: Take,
        deliver: Callable[[Iterable[Event]], None],
        below: Below,
        reach: Callable[[str], None],
    ) -> None:
        """`reach` is called with the address at which the followed parent serves nodes."""
        self._engine = engine
        self._below = below
        self._deliver = deliver
        assert settings.parent_name is not None, "the root is below nobody"
        self._name = settings.parent_name
        self._places = [Path(one) for one in settings.above]
        self._own = Path(settings.directory)
        self._home = private_directory(self._own / FOLDER)
        self._hello_s = engine.side.hello_ns / _S
        self._sealer = Sealer.given()
        near = engine.neighbours
        assert near.reports is not None, "an agent is no parent"
        self._reporter = Reporter(engine.table, near.charge, near.reports)
        self._desires = desires
        self._take = take
        self._reach = reach
        self._place: Path | None = None
        self._said: dict[Path, str] = {}
        self._log = 0
        self._made: dict[str, SavedSession] = {}
        self._doubted: dict[str, int] = {}
        self._news = asyncio.Event()

    def changed(self, entities: Iterable[EntityId]) -> None:
        """What is known of these is another than before."""
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

    async def run(self) -> None:
        """Follow and report until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self._report())

    async def _follow(self) -> None:
        replica = Replica.open(self._home / STATE_FILE)
        try:
            for place in cycle(self._places):
                with Boundary(f"the parent of {place}"):
                    await self._follow_one(place, replica)
                await asyncio.sleep(ASK_AGAIN_S)
        finally:
            replica.close()

    async def _follow_one(self, place: Path, replica: Replica) -> None:
        """Follow one parent for as long as it answers."""
        following: Following | None = None
        try:
            following = Following(Follower.BELOW, find(place).access, replica, self._home)
            while True:
                news = await asyncio.to_thread(following.ask)
                if self._place != place:
                    self._place = place
                    self._said.pop(place, None)
                    _log.info("follows the parent of %s", place)
                    if following.address is not None:
                        self._reach(following.address)
                if news:
                    await self._relay(replica)
        except HapteraError as error:
            if self._place == place:
                self._place = None
            if self._said.get(place) != str(error):
                self._said[place] = str(error)
                _log.warning("does not follow the parent of %s: %s", place, error)
        finally:
            if following is not None:
                following.close()

    async def _relay(self, replica: Replica) -> None:
        """Have the own store hold what is desired of the nodes, and their sessions."""
        entities, sessions, counted = await asyncio.to_thread(_read, replica, self._sealer)
        await asyncio.to_thread(keep_beside, self._own, _secrets(self._own, self._home))
        wanted = relayed(entities, self._name)

        async def make() -> tuple[Change, ...]:
            return changes(wanted, await self._desires.stored())

        await write(
            self._desires, make, Author("above", "as the parent above desires", Scope.ADMIN)
        )
        nodes = nodes_of(entities, self._name)
        for saved in await self._take(
            [one for one in sessions if one.peer in nodes],
            {name: incarnation for name, incarnation in counted.items() if name in nodes},
        ):
            self.enrolled(saved)

    async def _report(self) -> None:
        while True:
            lacks = self._engine.safety.exchange.asks.lacks_permits(now_ns())
            try:
                async with asyncio.timeout(min(EVERY_S, self._hello_s) if lacks else self._hello_s):
                    await self._news.wait()
            except TimeoutError:
                pass
            self._news.clear()
            if self._place is not None:
                with Boundary(f"the report to the parent of {self._place}"):
                    await self._report_to(self._place)
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


def _read(
    replica: Replica, sealer: Sealer
) -> tuple[list[StoredEntity], list[SavedSession], dict[str, int]]:
    connection = replica.connection
    assert connection is not None
    return (
        changes_sql.load(connection).entities,
        sessions_sql.load_sessions(connection, sealer),
        sessions_sql.load_incarnations(connection),
    )


def _secrets(own: Path, above: Path) -> dict[str, bytes]:
    """The own files, with the secrets of the parent above, and its term."""
    held = {name: one for name, one in read_beside(own).items() if not _is_from_above(name)}
    told = {name: one for name, one in read_beside(above).items() if _is_from_above(name)}
    return held | told


def _is_from_above(name: str) -> bool:
    return "/" in name or name == TERM


def join(home: Path, places: Iterable[str]) -> None:
    """Before the first start: take the cluster's authority and name from a parent above.

    Raises:
        HapteraError: none of them answers.
    """
    if read_beside(home).keys() >= {"ca.key", "cluster.json"}:
        return
    folder = private_directory(private_directory(home) / FOLDER)
    replica = Replica.open(folder / STATE_FILE)
    try:
        failed: HapteraError | None = None
        for place in places:
            try:
                following = Following(Follower.BELOW, find(Path(place)).access, replica, folder)
                following.ask()
                following.close()
            except HapteraError as error:
                failed = error
                continue
            keep_beside(home, read_beside(folder))
            return
        assert failed is not None, "there is at least one place"
        raise failed
    finally:
        replica.close()
