"""One controller at work on a simulated cluster: real engines, and a clock of its own."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from haptera.core.engine import Engine
from haptera.core.state.limits import S
from haptera.core.state.selecting import means
from haptera.core.views.bus import Bus
from haptera.core.views.query import detail
from haptera.model.answers.views import EntityView
from haptera.model.changes import Author, Change, StoredEntity
from haptera.model.effects import Reply
from haptera.model.entity import EntityId
from haptera.model.token_scope import Scope
from haptera.modules import load
from haptera.runtime.processes.control import Control
from haptera.sdk import Cluster, Controller
from haptera.selectors.selector import Selector
from haptera.testing.loop import SimulatedLoop
from haptera.testing.machine import Machine
from haptera.testing.network import NetworkFaults
from haptera.testing.searching import carried
from haptera.testing.world import World
from haptera.wire.control import Frame

Settings = TypeVar("Settings")

MODULES: Final = ("labnode", "service")
CALM: Final = NetworkFaults()
# How finely time passes where somebody looks whether something is so.
STEP_S: Final = 0.01


class Desk(Generic[Settings]):
    """Runs a controller against a whole simulated cluster; nothing waits, and all is seen.

    The nodes are simulated machines, off at first, whose `refuses` and `trouble` make them bad;
    `declare` gives them to the cluster. Time passes only in `run` and `until`: for the cluster,
    and for what the controller sleeps.
    """

    def __init__(
        self,
        controller: Controller[Settings],
        settings: Mapping[str, object],
        nodes: Iterable[str],
        *,
        seed: int = 0,
    ) -> None:
        self.world = World(seed, nodes, [load(name).manifest() for name in MODULES], CALM)
        self._source = _Source(self.world)
        self._loop = SimulatedLoop(self.world.clock)
        self._tasks = self._loop.run_until_complete(self._begin(controller, settings))

    @property
    def machines(self) -> Mapping[str, Machine]:
        return self.world.machines

    def propose(self, *changes: Change) -> Reply:
        """Write as somebody else, and let time pass until that is answered."""
        return self._loop.run_until_complete(
            self._source.propose(changes, None, Author("user:else", may=Scope.ADMIN))
        )

    def entity(self, entity: EntityId) -> EntityView | None:
        """How it is now."""
        return self._source.entity(entity)

    def run(self, seconds: float) -> None:
        """Let time pass; what the controller raises is raised."""
        self.until(lambda: False, within_s=seconds)

    def until(self, done: Callable[[], bool], *, within_s: float) -> bool:
        """Let time pass until it is so; tells whether it came to that."""
        return self._loop.run_until_complete(self._until(done, within_s))

    async def _until(self, done: Callable[[], bool], within_s: float) -> bool:
        end = self.world.clock.now + int(within_s * S)
        while not done() and self.world.clock.now < end:
            await asyncio.sleep(STEP_S)
            for task in self._tasks:
                if task.done():
                    task.result()
        return done()

    async def _begin(
        self, controller: Controller[Settings], settings: Mapping[str, object]
    ) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(one) for one in _speak(controller, settings, self._source)]

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Source:
    """The parent of a simulated cluster, as controllers read and write it."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def bus(self) -> Bus:
        return self._world.parent.bus

    def revision(self) -> int:
        return self._engine.table.revision

    def entity(self, entity: EntityId) -> EntityView | None:
        row = self._engine.table.get(entity)
        return None if row is None else detail(row, self._world.clock.now)

    def means(self, selector: Selector, entity: EntityId) -> bool:
        return means(self._engine.table, selector, entity, self._world.clock.now)

    def declared(self, entity: EntityId) -> StoredEntity | None:
        return self._engine.table.declared(entity)

    async def propose(
        self, changes: tuple[Change, ...], if_revision: int | None, author: Author
    ) -> Reply:
        ticket = self._world.propose(changes, if_revision, author)
        replies = self._world.parent.replies
        while (reply := replies.pop(ticket, None)) is None:  # noqa: ASYNC110  time is simulated
            await asyncio.sleep(STEP_S)
        return reply

    @property
    def _engine(self) -> Engine:
        engine = self._world.parent.engine
        assert engine is not None, "the parent is down"
        return engine


def _speak(
    controller: Controller[Settings], settings: Mapping[str, object], source: _Source
) -> tuple[Coroutine[Any, Any, None], Coroutine[Any, Any, None]]:
    """Both ends of a controller's link; what they say to each other passes as bytes."""
    loop = asyncio.get_running_loop()

    def to_daemon(frame: Frame) -> None:
        loop.call_soon(control.take, carried(frame))

    cluster = Cluster(controller.name, controller.settings(settings), to_daemon, loop.time)
    control = Control(controller.name, source, _Link(cluster))
    return control.run(), controller.function(cluster)


class _Link:
    """The way from the daemon's end to the controller's; here nobody is ever too fast."""

    def __init__(self, cluster: Cluster[Any]) -> None:
        self._cluster = cluster

    def send(self, frame: Frame) -> None:
        asyncio.get_running_loop().call_soon(self._cluster.take, carried(frame))

    def hold(self) -> None:
        pass

    def go_on(self) -> None:
        pass
