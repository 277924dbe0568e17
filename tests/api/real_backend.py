"""The application on a real engine and a real store, without processes, agents or sockets."""

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from haptera.api.backend import Backend
from haptera.core.engine import Engine
from haptera.core.state.side import Side
from haptera.core.views.bus import Bus
from haptera.daemon.backend.desires import EngineDesires
from haptera.daemon.backend.orders import ParentOrders
from haptera.daemon.backend.outputs import ParentOutputs
from haptera.daemon.backend.queries import EngineQueries
from haptera.daemon.backend.readings import ParentReadings
from haptera.daemon.backend.records import StoreRecords
from haptera.daemon.backend.token_desk import StoreTokens
from haptera.daemon.backend.tree_desk import ParentTree
from haptera.daemon.channels.inviting import Inviting
from haptera.daemon.logs import Logs
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
from haptera.modules.image.store import store_of
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
                    backend.desires.answered(effect)
                case Publish(entities, types):
                    backend.bus.publish(entities, types)
                    backend.jobs.heed(entities)
                case _:
                    assert modules, effect  # No process of them is there, to do it.

    driver = Driver(engine)
    backend, samples = _backend(folder, engine, store, feed, driver, stored.epoch)
    running = asyncio.create_task(driver.run(perform))
    try:
        reply = await backend.desires.propose(changes, None, AUTHOR)
        assert reply.refusal is None, reply
        yield backend
    finally:
        running.cancel()
        samples.close()
        store.close()


def _backend(folder, engine, store, feed, driver, epoch):
    """The backend, and its samples, which are to be closed."""
    authority = open_authority(folder / "pki", clock.wall_s())
    samples = SampleParts(engine, folder, SampleLimits())
    jobs = ParentQueue(store, engine.table, lambda done: done())
    jobs.on_work = lambda nodes: driver.deliver([Noticed(nodes)])
    below = Below(engine, driver.deliver, _nobody, _nobody, 0)
    logs = Logs(folder, (), consoles=[folder])
    job_logs = JobLogs(folder / "job_logs", lambda _node: False, _nobody)
    desires = EngineDesires(engine, driver.deliver, epoch)
    return Backend(
        queries=EngineQueries(engine, lambda _node: None, _nobody),
        desires=desires,
        orders=ParentOrders(
            *(store, feed, below, driver.deliver),
            execute=_nobody,
            invite=Inviting(store, authority, "127.0.0.1").invite,
            evict=_no_session,
        ),
        records=StoreRecords(store, folder / "history", desires),
        outputs=ParentOutputs(
            engine.table, logs, jobs, job_logs, store_of(authority.directory), _nobody
        ),
        readings=ParentReadings(engine, store, driver.deliver),
        tokens=StoreTokens(store, authority),
        tree=ParentTree(store, below, Replicas(feed, store, folder)),
        jobs=jobs,
        samples=samples.board,
        bus=Bus(f"{epoch}-{secrets.token_hex(4)}", lambda: (one.id for one in engine.table)),
    ), samples


async def _no_session(_node):
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
