"""`haptera serve`: a parent, from its state file to its API."""

import asyncio
import logging
import secrets
import signal
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.api.backend import Backend
from haptera.api.requests.meters import Meters
from haptera.api.routes.metrics import Tallies
from haptera.core.engine import Engine
from haptera.core.state.limits import MS, S
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.core.sync.parents import STANDS_H
from haptera.core.views.bus import Bus
from haptera.daemon.backend.desires import EngineDesires
from haptera.daemon.backend.orders import ParentOrders
from haptera.daemon.backend.outputs import ParentOutputs
from haptera.daemon.backend.queries import EngineQueries
from haptera.daemon.backend.readings import ParentReadings
from haptera.daemon.backend.records import StoreRecords
from haptera.daemon.backend.token_desk import StoreTokens
from haptera.daemon.backend.tree_desk import ParentTree
from haptera.daemon.channels.rekeying import new_boot
from haptera.daemon.cluster import check_cluster
from haptera.daemon.executing.audited import audited
from haptera.daemon.health.caps import health_keepers
from haptera.daemon.logs import Logs
from haptera.daemon.parent.client import write_client
from haptera.daemon.parent.doors import Doors
from haptera.daemon.parent.image_door import keep_above
from haptera.daemon.parent.modules import ParentModules
from haptera.daemon.parent.nodes import NodeLinks
from haptera.daemon.parent.parent_api import ParentApi
from haptera.daemon.parent.programs import Programs
from haptera.daemon.parent.record import EventRecorder
from haptera.daemon.parent.site_at_start import apply_at_start
from haptera.daemon.parent.storage import Storage
from haptera.daemon.parent.succession import succeed_another
from haptera.daemon.parts import HELLO_PORT, check_stored
from haptera.daemon.queue.backends import Backends
from haptera.daemon.queue.job_logs import JobLogs
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.daemon.queue.pools import Pools
from haptera.daemon.respawn import Lives
from haptera.daemon.samples.sample_parts import SampleParts
from haptera.daemon.settings import ParentSettings
from haptera.daemon.tree.leased import lease_in_etcd
from haptera.daemon.tree.place import Tree
from haptera.daemon.tree.replicas import Replicas
from haptera.kinds import instance
from haptera.model.changes import Stored
from haptera.model.effects import Publish
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.model.events import Noticed
from haptera.model.parts import Context
from haptera.modules.image.store import store_of
from haptera.runtime import clock
from haptera.runtime.driver import Driver
from haptera.runtime.garbage import old_objects_frozen
from haptera.runtime.log import log_to_stderr
from haptera.runtime.network.tls_server import listen as listen_for_tls
from haptera.runtime.network.udp import Udp
from haptera.runtime.notify import keep_telling
from haptera.runtime.performer import Performer, never
from haptera.runtime.processes.forking import LoopZygote, ZygoteClient, exec_zygote, fork_zygote
from haptera.site.apply.sites import Sites
from haptera.site.model.kinds import know_kinds

JOB_LOGS: Final = "jobs"
# What tells this process's numbers of changes from those of others with the same store.
TAG_BYTES: Final = 4
# What a parent takes for a node that tells it all anew.
GREET_EACH_NS: Final = MS // 2

_log = logging.getLogger(__name__)


def serve_process(arguments: Mapping[str, Any], descriptors: list[int]) -> None:
    """Be a parent: a fork target."""
    zygote = fork_zygote()
    try:
        run(msgspec.convert(dict(arguments), ParentSettings), zygote)
    except HapteraError as error:
        _log.error("%s", error)
        sys.exit(1)


def run(settings: ParentSettings, zygote: ZygoteClient | None = None) -> None:
    """Run until interrupted or terminated.

    Raises:
        HapteraError: a port is in use, the state file cannot be used…; nothing has changed.
    """
    log_to_stderr()
    check_cluster(Path(settings.directory), settings.name)
    first = [zygote] if zygote is not None else []
    starting = LoopZygote(lambda: first.pop() if first else exec_zygote())
    try:
        asyncio.run(_run(settings, starting))
    except OSError as error:
        raise HapteraError(
            f"cannot be used: {error.strerror or error}",
            where=error.filename or settings.directory,
            do="check the disk, then start again",
        ) from error


async def _run(settings: ParentSettings, zygote: LoopZygote) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    know_kinds(one.declares for one in settings.own)
    parent = _Parent(settings, await ParentModules.described(settings, zygote))
    try:
        await parent.serve(stopped)
    finally:
        parent.close()


class _Parent:
    """One parent process: its parts, in the order in which they are made of each other."""

    def __init__(self, settings: ParentSettings, modules: ParentModules) -> None:
        self._settings = settings
        self._modules = modules
        self._storage = storage = Storage(settings, lambda events: self._driver.deliver(events))
        modules.keep()
        udp = Udp.bind(settings.address, HELLO_PORT)
        tls = listen_for_tls(settings.address, HELLO_PORT)
        doors = Doors.open(settings, storage.authority, storage.store)
        stored = storage.store.load()
        engine, meters = _engine(settings, modules, storage, stored), Meters()
        self._driver = Driver(engine, meters.turned)
        deliver = self._driver.deliver
        self._record = EventRecorder(engine.table, storage.history)
        self._jobs = ParentQueue(storage.store, engine.table, storage.feed.answer)
        self._jobs.on_work = lambda nodes: deliver([Noticed(nodes)])
        self._numbers = SampleParts(engine, storage.home, settings.samples)
        work = self._jobs.ask_of_node
        self._nodes = NodeLinks(udp, tls, engine, storage, modules, deliver, work)
        self._desires = EngineDesires(engine, deliver, stored.epoch, settings.radius_percent)
        self._tree = Tree(
            engine, storage.store, self._nodes.sessions, self._desires, deliver, storage.feed.log
        )
        self._tree.follow(settings, partial(keep_above, storage.authority))
        logs, job_logs = modules.logs(), self._job_logs(engine.table)
        backend = self._backend(engine, logs, job_logs)
        self._programs = Programs(
            modules, logs.log_dir, storage.secrets, backend, self._numbers.sampling, deliver
        )
        self._api = ParentApi(backend, _sites(modules, self._programs), meters, doors)
        cluster = storage.authority.cluster
        self._pools = Pools(backend, self._jobs, f"haptera-{cluster}")
        self._keepers = (
            *(job_logs, self._pools, Lives(storage.home), self._numbers.sampling),
            *health_keepers(backend, self._jobs, self._numbers.board),
            Backends(backend, self._jobs, cluster.hex, modules.grounds.hidden),
        )

    def _job_logs(self, table: EntityTable) -> JobLogs:
        def goes(holder: str) -> bool:
            return table.get(EntityId(instance.kind.name, holder, None)) is not None

        job_logs = JobLogs(self._storage.home / JOB_LOGS, goes, self._nodes.channel.ask)
        self._jobs.on_end = job_logs.want
        return job_logs

    def _backend(self, engine: Engine, logs: Logs, job_logs: JobLogs) -> Backend:
        storage, nodes, below = self._storage, self._nodes, self._tree.below
        store, ask = storage.store, nodes.channel.ask
        replicas = Replicas(storage.feed, store, storage.home, self._settings.address)
        names = f"{self._desires.epoch}-{secrets.token_hex(TAG_BYTES)}"
        return Backend(
            queries=EngineQueries(engine, nodes.sessions.level, ask),
            desires=self._desires,
            orders=ParentOrders(
                *(store, storage.feed, below, self._driver.deliver),
                execute=audited(store, nodes.channel.execute),
                invite=nodes.inviting.invite,
                evict=nodes.sessions.evict,
            ),
            records=StoreRecords(store, storage.history, self._desires),
            outputs=ParentOutputs(
                engine.table, logs, self._jobs, job_logs, store_of(storage.home), ask
            ),
            readings=ParentReadings(engine, store, self._driver.deliver),
            tokens=StoreTokens(store, storage.authority),
            tree=ParentTree(store, below, replicas),
            jobs=self._jobs,
            samples=self._numbers.board,
            bus=Bus(names, lambda: (row.id for row in engine.table)),
        )

    async def serve(self, stopped: asyncio.Event) -> None:
        """Run until it is stopped."""
        settings, nodes, doors = self._settings, self._nodes, self._api.doors
        storage = self._storage
        lease = lease_in_etcd(settings.etcd, storage.home, settings.address, later=0)
        if lease is not None:
            await lease.begin(stopped)
        nodes.begin(self._driver.waiting, self._numbers.board.measured)
        enrolment = nodes.enrolment(self._tree)
        images = nodes.image_servers(self._jobs)
        write_client(Path(settings.client), doors, settings.constants, storage.store)
        servers = self._api.servers(self._tallies(enrolment.counts))
        performer = self._performer().each(self._driver.deliver)
        with old_objects_frozen():
            async with asyncio.TaskGroup() as tasks:
                running = [
                    tasks.create_task(self._driver.run(performer)),
                    tasks.create_task(self._jobs.run()),
                    *(tasks.create_task(one.run()) for one in (nodes.sessions, *self._keepers)),
                    tasks.create_task(nodes.serve(enrolment, doors.nodes_max())),
                    *(() if lease is None else (tasks.create_task(lease.keep(stopped)),)),
                    *(tasks.create_task(one) for one in self._tree.runs(nodes.channel.exchange)),
                    *(tasks.create_task(one.run()) for one in (*servers, *images)),
                ]
                for line in self._modules.confinement_told():
                    _log.info("%s", line)
                _log.info("serves the API at %s; client file: %s", doors.url, settings.client)
                wrong = await apply_at_start(settings.site, self._api.sites, self._desires)
                if wrong is None:
                    running.append(tasks.create_task(keep_telling()))
                    await stopped.wait()
                for task in running:
                    task.cancel()
        if lease is not None and lease.lost is not None:
            raise lease.lost
        if wrong is not None:
            raise wrong

    def _tallies(self, enrolled: Mapping[str, int]) -> Tallies:
        """The counts that the metrics of the API export."""
        nodes, feed = self._nodes, self._storage.feed
        return Tallies(
            *(nodes.udp.counts, enrolled, nodes.requests, self._api.doors.counts),
            *(lambda: feed.lag, self._pools.standing, self._pools.refused, self._storage.home),
            dropped=self._numbers.dropped,
        )

    def close(self) -> None:
        """End what does not end with its task."""
        self._api.doors.close()
        self._programs.close()
        self._nodes.udp.close()
        self._storage.store.close()
        self._record.close()
        self._numbers.close()

    def _performer(self) -> Performer:
        programs, nodes = self._programs, self._nodes
        return Performer(
            call=lambda call: programs.starter.call(call, nodes.inviting.boot_of(call)),
            cancel=programs.processes.cancel,
            start=programs.starter.start,
            stop=programs.starter.stop,
            write=self._storage.store.submit,
            keep=never,
            tell=nodes.udp.tell,
            ask=nodes.channel.exchange.send,
            search=programs.searcher.search,
            answer=self._desires.answered,
            publish=self._publish,
        )

    def _publish(self, effect: Publish) -> None:
        self._api.backend.bus.publish(effect.entities, effect.types)
        self._record.changed(effect.entities)
        self._jobs.heed(effect.entities)
        self._nodes.sessions.heed(effect.entities)
        self._tree.changed(effect.entities)
        self._numbers.changed(effect.entities)


def _engine(
    settings: ParentSettings, modules: ParentModules, storage: Storage, stored: Stored
) -> Engine:
    """The engine of what is stored."""
    check_stored(stored)
    side = Side(
        Context.PARENT,
        None,
        new_boot(),
        clock.kernel_boot(),
        settings.hello_ms * MS,
        secrets.SystemRandom().random,
        settings.parent_name,
        GREET_EACH_NS,
    )
    engine = Engine(side, modules.catalog, stored, modules.codec.schema, clock.now_ns())
    succeed_another(storage.home, engine)
    requests = storage.store.requests(STANDS_H * side.hello_ns / S)
    engine.requests.take_up(requests, clock.now_ns())
    return engine


def _sites(modules: ParentModules, programs: Programs) -> Sites:
    settings = modules.settings
    return Sites(
        settings.name,
        settings.modules,
        settings.controllers,
        settings.own,
        lambda: modules.catalog.manifests.values(),
        programs.readers.ask,
    )
