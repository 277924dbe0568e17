"""Controllers of a simulated parent: real ones, over links of bytes, on simulated time."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from haptera.core.engine import Engine
from haptera.core.state.limits import S
from haptera.core.state.selecting import means
from haptera.core.views.bus import Bus
from haptera.core.views.query import detail
from haptera.model.answers.views import EntityView
from haptera.model.changes import Author, Change, StoredEntity
from haptera.model.effects import Reply
from haptera.model.entity import EntityId
from haptera.runtime.processes.control import Control
from haptera.sdk import Cluster, Controller
from haptera.selectors.selector import Selector
from haptera.testing.clock import Clock
from haptera.testing.loop import SimulatedLoop
from haptera.testing.searching import carried
from haptera.testing.world_process import WorldProcess
from haptera.wire.control import Frame

# How finely time passes where somebody looks whether something is so.
STEP_S: Final = 0.01

# A controller, with what a site file gives it.
GivenController = tuple[Controller[Any], Mapping[str, object]]


class Parented(Protocol):
    """A simulated cluster, as its controllers need it."""

    clock: Clock
    parent: WorldProcess

    def propose(
        self,
        changes: Iterable[Change],
        if_revision: int | None = None,
        author: Author | None = None,
    ) -> int:
        """Ask the parent for changes of desired state; returns the ticket of its reply."""

    def wall_s(self) -> float:
        """The time of the wall clocks."""


class SimulatedSource:
    """The parent of a simulated cluster, as controllers read and write it."""

    def __init__(self, world: Parented) -> None:
        self._world = world
        # It is asked for little enough to be both.
        self.queries = self.desires = self

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


class SimulatedControllers:
    """The controllers of a simulated parent, each from `begin` to `end`, as the parent lives."""

    def __init__(self, world: Parented, given: Sequence[GivenController]) -> None:
        self.source = SimulatedSource(world)
        self.loop = SimulatedLoop(world.clock)
        self._world = world
        self._given = given
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Start all of them, as a parent that starts does."""
        for controller, settings in self._given:
            cluster, control = self._linked(controller, settings)
            self._tasks.append(self.loop.create_task(control.run()))
            self._tasks.append(self.loop.create_task(controller.function(cluster)))

    def end(self) -> None:
        """End all of them, as they do with their parent."""
        for task in self._tasks:
            task.cancel()
        self._tasks.clear()

    def run_until(self, end: int) -> None:
        """Let time pass until then; what a controller raises is raised."""
        self.loop.run_until_complete(self._passing(lambda: False, end, None))

    def pass_until(self, done: Callable[[], bool], end: int) -> bool:
        """Let time pass until it is so, or until then; True if it is so."""
        return self.loop.run_until_complete(self._passing(done, end, STEP_S))

    def close(self) -> None:
        """End all of them for good."""
        self.end()
        ended = asyncio.all_tasks(self.loop)
        self.loop.run_until_complete(asyncio.gather(*ended, return_exceptions=True))
        self.loop.close()

    async def _passing(self, done: Callable[[], bool], end: int, step_s: float | None) -> bool:
        clock = self._world.clock
        while not done() and clock.now < end:
            left_s = (end - clock.now) / S
            await asyncio.sleep(left_s if step_s is None else step_s)
            for task in self._tasks:
                if task.done():
                    task.result()
        return done()

    def _linked(
        self, controller: Controller[Any], settings: Mapping[str, object]
    ) -> tuple[Cluster[Any], Control]:
        """Both ends of a controller's link; what they say to each other passes as bytes."""

        def to_daemon(frame: Frame) -> None:
            self.loop.call_soon(control.take, carried(frame))

        given = controller.settings(settings)
        cluster = Cluster(controller.name, given, to_daemon, self._world.wall_s)
        control = Control(controller.name, self.source, _Link(cluster, self.loop))
        return cluster, control


class _Link:
    """The way from the daemon's end to the controller's; here nobody is ever too fast."""

    def __init__(self, cluster: Cluster[Any], loop: SimulatedLoop) -> None:
        self._cluster = cluster
        self._loop = loop

    def send(self, frame: Frame) -> None:
        self._loop.call_soon(self._cluster.take, carried(frame))

    def hold(self) -> None:
        pass

    def go_on(self) -> None:
        pass
