"""A parent below another: follows that one's store for its nodes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Final, Protocol

from haptera.client import find
from haptera.core.sync.relay import changes, nodes_of, relayed
from haptera.daemon.settings import ParentSettings
from haptera.daemon.tree.following import Following, keep_beside
from haptera.daemon.tree.replicas import TERM, read_beside
from haptera.daemon.tree.reporting import Reporting
from haptera.model.changes import Author, Change, StoredEntity
from haptera.model.errors import HapteraError
from haptera.model.token_scope import Scope
from haptera.runtime.identity.private import private_directory
from haptera.runtime.identity.sealing import Sealer
from haptera.runtime.store import changes_sql, sessions_sql
from haptera.runtime.store.feed import Follower
from haptera.runtime.store.optimistic_write import Proposing, write
from haptera.runtime.store.replica import Replica
from haptera.runtime.store.sessions import SavedSession
from haptera.runtime.store.store import STATE_FILE
from haptera.sdk.boundary import Boundary

FOLDER: Final = "above"
ASK_AGAIN_S: Final = 0.3

_log = logging.getLogger(__name__)


# Has the sessions of nodes, and how far their incarnations were counted, heeded here; returns the
# sessions that the parent above does not know yet.
Take = Callable[[Sequence[SavedSession], Mapping[str, int]], Awaitable[Sequence[SavedSession]]]


class Stores(Proposing, Protocol):
    """Who takes proposals, and says what is desired now."""

    async def stored(self) -> Sequence[StoredEntity]: ...


class Above:
    """The one of the parents above that is followed now; what is reported goes to it."""

    def __init__(
        self,
        settings: ParentSettings,
        reporting: Reporting,
        desires: Stores,
        take: Take,
        reach: Callable[[str], None],
    ) -> None:
        """`reach` is called with the address at which the followed parent serves nodes."""
        assert settings.parent_name is not None, "the root is below nobody"
        self._name = settings.parent_name
        self._places = [Path(one) for one in settings.above]
        self._own = Path(settings.directory)
        self._home = private_directory(self._own / FOLDER)
        self._sealer = Sealer.given()
        self.reporting = reporting
        self._desires = desires
        self._take = take
        self._reach = reach
        self._place: Path | None = None
        self._said: dict[Path, str] = {}

    async def run(self) -> None:
        """Follow and report until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            tasks.create_task(self.reporting.run(lambda: self._place))

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
            self.reporting.enrolled(saved)


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
