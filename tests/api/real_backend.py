"""The application on a real engine and a real store, without processes, agents or sockets."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from haptera.core.engine import Engine
from haptera.core.state.side import Side
from haptera.daemon.channels.inviting import Inviting
from haptera.daemon.logs import Logs
from haptera.daemon.parent.backend import Around, EngineBackend
from haptera.daemon.parts import catalog_of, codec_of
from haptera.daemon.queue.job_logs import JobLogs
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.daemon.samples.sample_parts import SampleParts
from haptera.daemon.tree.below import Below
from haptera.daemon.tree.replicas import Replicas
from haptera.model.changes import Author
from haptera.model.effects import PlanReply, Publish, Reply, Write
from haptera.model.events import Noticed
from haptera.model.parts import Context
from haptera.model.token_scope import Scope
from haptera.runtime import clock
from haptera.runtime.driver import Driver
from haptera.runtime.identity.pki import open_authority
from haptera.runtime.samples.limits import SampleLimits
from haptera.runtime.store.feed import Feed
from haptera.runtime.store.store import STATE_FILE, Store

AUTHOR = Author("site", may=Scope.ADMIN)
WITHIN_S = 60


@contextlib.asynccontextmanager
async def real_backend(folder: Path, *changes, modules=()):
    """A backend that holds these changes, in the running loop."""
    loop = asyncio.get_running_loop()
    feed = Feed(loop)
    store = Store.open(
        folder / STATE_FILE,
        deliver=lambda done: loop.call_soon_threadsafe(driver.deliver, [done]),
        wall_s=clock.wall_s,
        shipped=lambda batch: loop.call_soon_threadsafe(feed.add, batch),
    )
    catalog, stored = catalog_of(modules, ()), store.load()
    side = Side(Context.PARENT, None, 1, clock.kernel_boot(), 5_000_000_000)
    engine = Engine(side, catalog, stored, codec_of(catalog).schema, clock.now_ns())

    def perform(effects):
        for effect in effects:
            match effect:
                case Write():
                    store.submit(effect)
                case Reply() | PlanReply():
                    backend.answered(effect)
                case Publish(entities, types):
                    backend.bus.publish(entities, types)
                    backend.jobs.heed(entities)
                case _:
                    assert modules, effect  # No process of them is there, to do it.

    driver = Driver(engine)
    authority = open_authority(folder / "pki", clock.wall_s())
    samples = SampleParts(engine, folder, SampleLimits())
    jobs = ParentQueue(store, engine.table, lambda done: done())
    jobs.on_work = lambda nodes: driver.deliver([Noticed(nodes)])
    around = Around(
        driver.deliver,
        _nobody,
        _nobody,
        NoSessions(),
        Inviting(store, authority, "127.0.0.1"),
        Logs(folder, (), consoles=[folder]),
        folder / "history",
        authority,
        Replicas(feed, store, folder),
        Below(engine, driver.deliver, _nobody, _nobody, 0),
        jobs,
        JobLogs(folder / "job_logs", lambda _node: False, _nobody),
        samples.board,
    )
    backend = EngineBackend(engine, store, stored.epoch, around)
    running = asyncio.create_task(driver.run(perform))
    try:
        reply = await backend.propose(changes, None, AUTHOR)
        assert reply.refusal is None, reply
        yield backend
    finally:
        running.cancel()
        samples.close()
        store.close()


class NoSessions:
    """No node has enrolled."""

    def level(self, peer: str) -> str | None:
        return None

    async def evict(self, peer: str) -> int | None:
        return None


async def _nobody(*_):
    raise AssertionError("there are no agents")


async def comes(so: Callable[[], bool], told: Callable[[], object]) -> None:
    """Wait until something else has had it so; what is `told` explains where it does not come."""
    try:
        async with asyncio.timeout(WITHIN_S):
            while not so():  # noqa: ASYNC110  what is waited for is another's write
                await asyncio.sleep(0.01)
    except TimeoutError:
        pytest.fail(f"that does not come: {told()}")
