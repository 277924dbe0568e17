"""`haptera serve`: a parent, from its state file to its API."""

import asyncio
import logging
import secrets
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import msgspec
from starlette.applications import Starlette

from haptera.api.app import make_app
from haptera.api.requests.meters import Meters
from haptera.api.routes.metrics import Tallies
from haptera.core.engine import Engine
from haptera.core.state.limits import MS, S
from haptera.core.state.side import Side
from haptera.core.sync.parents import STANDS_H
from haptera.daemon.channels.inviting import Inviting
from haptera.daemon.channels.parent_channel import ParentChannel
from haptera.daemon.channels.rekeying import new_boot
from haptera.daemon.channels.sessions import Sessions
from haptera.daemon.cluster import ClusterIdentity, check_cluster, keep_cluster, read_cluster
from haptera.daemon.confining import confinement_told, confinements, grounds_of_parent
from haptera.daemon.executing.audited import audited
from haptera.daemon.health.caps import health_keepers
from haptera.daemon.logs import Logs
from haptera.daemon.parent.backend import Around, EngineBackend
from haptera.daemon.parent.client import write_client
from haptera.daemon.parent.doors import Doors
from haptera.daemon.parent.image_door import image_servers, keep_above
from haptera.daemon.parent.record import EventRecorder
from haptera.daemon.parent.site_at_start import apply_at_start
from haptera.daemon.parent.succession import succeed_another
from haptera.daemon.parts import HELLO_PORT, catalog_of, check_stored, codec_of, told_to_nodes
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
from haptera.model.events import Event, Noticed
from haptera.model.parts import Context
from haptera.modules import BUNDLED
from haptera.runtime import clock
from haptera.runtime.driver import Driver
from haptera.runtime.enrolment.enrol_server import EnrolServer, Offer
from haptera.runtime.garbage import old_objects_frozen
from haptera.runtime.identity.pki import open_authority
from haptera.runtime.log import log_to_stderr
from haptera.runtime.network.request_server import RequestServer
from haptera.runtime.network.tls_server import listen as listen_for_tls
from haptera.runtime.network.udp import Udp
from haptera.runtime.notify import keep_telling
from haptera.runtime.performer import Performer, never
from haptera.runtime.processes.controllers import Controllers
from haptera.runtime.processes.forking import LoopZygote, ZygoteClient, exec_zygote, fork_zygote
from haptera.runtime.processes.own_modules import describe
from haptera.runtime.processes.process import ModuleProcesses
from haptera.runtime.processes.secrets import SecretStore, Starter
from haptera.runtime.search.searcher import Searcher
from haptera.runtime.store.event_log_writer import Recorder
from haptera.runtime.store.feed import Feed
from haptera.runtime.store.store import STATE_FILE, Store
from haptera.site.apply.site_process import readers
from haptera.site.apply.sites import Sites
from haptera.site.model.kinds import know_kinds

HISTORY_FOLDER: Final = "history"
JOB_LOGS: Final = "jobs"
# Which modules record consoles.
CONSOLES_BY: Final = ("ipmi", "libvirt", "qemu")
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
        asyncio.run(_Parent(settings, starting).run())
    except OSError as error:
        raise HapteraError(
            f"cannot be used: {error.strerror or error}",
            where=error.filename or settings.directory,
            do="check the disk, then start again",
        ) from error


class _Parent:
    """One parent process: a store, an authority, sockets, an engine, modules, an API."""

    def __init__(self, settings: ParentSettings, zygote: LoopZygote) -> None:
        self._settings = settings
        self._zygote = zygote
        self._sites = Sites(
            settings.name,
            settings.modules,
            settings.controllers,
            settings.own,
            lambda: self._catalog.manifests.values(),
            lambda question: self._readers.ask(question),
        )
        self._home = Path(settings.directory)
        self._secrets = SecretStore.open(self._home)
        self._boot = new_boot()
        self._meters = Meters()
        self._deliver: Callable[[Iterable[Event]], None]

    async def run(self) -> None:
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped.set)
        know_kinds(one.declares for one in self._settings.own)
        known = read_cluster(self._home)
        described = () if known is None else known.described
        self._grounds = grounds_of_parent(self._settings)
        # To say what it is, a module needs nothing.
        least = confinements(self._grounds, lambda _: None)
        self._own = await describe(self._zygote, self._settings.own, described, self._home, least)
        self._open(loop)
        try:
            await self._serve(stopped)
        finally:
            self._close()

    def _open(self, loop: asyncio.AbstractEventLoop) -> None:
        settings = self._settings
        cluster = None if settings.cluster is None else UUID(settings.cluster)
        sealer = self._secrets.sealer
        self._authority = open_authority(self._home, clock.wall_s(), cluster, sealer)

        def shipped(batch: bytes) -> None:
            loop.call_soon_threadsafe(self._feed.add, batch)

        def answered(done: Event) -> None:
            # After the feed has what was written: it may hold the answer.
            loop.call_soon_threadsafe(self._feed.answer, lambda: self._deliver([done]))

        self._feed = Feed(loop)
        self._store = Store.open(
            self._home / STATE_FILE, sealer, deliver=answered, wall_s=clock.wall_s, shipped=shipped
        )
        keep_cluster(
            self._home,
            ClusterIdentity(
                settings.name, settings.modules, settings.controllers, settings.own, self._own
            ),
        )
        self._udp = Udp.bind(settings.address, HELLO_PORT)
        self._tls = listen_for_tls(settings.address, HELLO_PORT)
        self._doors = Doors.open(settings, self._authority, self._store)
        others = [one.manifest for one in self._own]
        others += [one.manifest() for one in settings.controllers]
        self._catalog = catalog_of(settings.modules, others)
        self._codec = codec_of(self._catalog)
        self._begin(self._store.load())

    def _begin(self, stored: Stored) -> None:
        """Make the engine of what is stored, and its questions and answers."""
        check_stored(stored)
        side = Side(
            Context.PARENT,
            None,
            self._boot,
            clock.kernel_boot(),
            self._settings.hello_ms * MS,
            secrets.SystemRandom().random,
            self._settings.parent_name,
            GREET_EACH_NS,
        )
        engine = Engine(side, self._catalog, stored, self._codec.schema, clock.now_ns())
        succeed_another(self._home, engine)
        engine.requests.take_up(self._store.requests(STANDS_H * side.hello_ns / S), clock.now_ns())
        self._driver = Driver(engine, self._meters.turned)
        self._recorder = Recorder(self._home / HISTORY_FOLDER)
        self._record = EventRecorder(engine.table, self._recorder)
        self._deliver = self._driver.deliver
        self._table = table = engine.table
        self._jobs = ParentQueue(self._store, table, self._feed.answer)
        self._numbers = SampleParts(engine, self._home, self._settings.samples)
        self._channel = ParentChannel(
            self._authority,
            engine,
            self._codec,
            self._deliver,
            clock.wall_s,
            self._secrets,
            self._jobs.ask_of_node,
        )
        self._sessions = Sessions(
            self._store, self._udp, self._channel, self._boot, self._channel.declares
        )
        self._tree = Tree(engine, self._store, self._sessions, self._deliver, self._feed.log)
        consoles = [self._grounds.folders / module for module in CONSOLES_BY]
        self._logs = Logs(self._home, self._catalog.modules(Context.PARENT), consoles)
        self._searcher = Searcher(self._zygote, self._deliver, self._logs.log_dir)
        self._readers = readers(self._zygote, self._logs.log_dir)
        self._make_backend(engine, stored.epoch)

    def _make_backend(self, engine: Engine, epoch: int) -> None:
        def goes(holder: str) -> bool:
            return engine.table.get(EntityId(instance.kind.name, holder, None)) is not None

        job_logs = JobLogs(self._home / JOB_LOGS, goes, self._channel.ask)
        self._jobs.on_end = job_logs.want
        self._jobs.on_work = lambda nodes: self._deliver([Noticed(nodes)])
        self._inviting = Inviting(self._store, self._authority, self._settings.address)
        self._backend = EngineBackend(
            engine,
            self._store,
            epoch,
            Around(
                self._deliver,
                self._channel.ask,
                audited(self._store, self._channel.execute),
                self._sessions,
                self._inviting,
                self._logs,
                self._home / HISTORY_FOLDER,
                self._authority,
                Replicas(self._feed, self._store, self._home, self._settings.address),
                self._tree.below,
                self._jobs,
                job_logs,
                self._numbers.board,
            ),
        )
        self._tree.follow(self._settings, self._backend, partial(keep_above, self._authority))
        self._backend.radius_percent = self._settings.radius_percent
        tag = f"haptera-{self._authority.cluster}"
        hidden = self._grounds.hidden
        self._pools = Pools(self._backend, self._jobs, tag)
        self._keepers = (
            *(job_logs, self._pools, Lives(self._home), self._numbers.sampling),
            *health_keepers(self._backend, self._jobs, self._numbers.board),
            Backends(self._backend, self._jobs, self._authority.cluster.hex, hidden),
        )

    async def _serve(self, stopped: asyncio.Event) -> None:
        settings = self._settings
        self._make_starter()
        lease = lease_in_etcd(settings.etcd, self._home, settings.address, later=0)
        if lease is not None:
            await lease.begin(stopped)
        moved, measured = self._sessions.moved, self._numbers.board.measured
        waiting = self._driver.waiting
        self._udp.start(self._codec, self._deliver, moved, waiting, sampled=measured)
        self._sessions.open()
        enrolment = self._enrolment(requests := Counter[str]())
        app = self._app(enrolment.counts, requests)
        images = image_servers(settings, self._authority, self._channel, self._table, self._jobs)
        write_client(Path(settings.client), self._doors, settings.constants, self._store)
        with old_objects_frozen():
            async with asyncio.TaskGroup() as tasks:
                running = [
                    tasks.create_task(self._driver.run(self._performer().each(self._deliver))),
                    tasks.create_task(self._jobs.run()),
                    *(tasks.create_task(one.run()) for one in (self._sessions, *self._keepers)),
                    tasks.create_task(
                        enrolment.serve(self._tls, self._doors.nodes_max(), self._sessions.hosts())
                    ),
                    *(() if lease is None else (tasks.create_task(lease.keep(stopped)),)),
                    *(tasks.create_task(one) for one in self._tree.runs(self._channel.exchange)),
                    *(tasks.create_task(one.run()) for one in (*self._doors.servers(app), *images)),
                ]
                for line in confinement_told(self._grounds, self._catalog.manifests):
                    _log.info("%s", line)
                _log.info("serves the API at %s; client file: %s", self._doors.url, settings.client)
                wrong = await apply_at_start(settings.site, self._sites, self._backend)
                if wrong is None:
                    running.append(tasks.create_task(keep_telling()))
                    await stopped.wait()
                for task in running:
                    task.cancel()
        if lease is not None and lease.lost is not None:
            raise lease.lost
        if wrong is not None:
            raise wrong

    def _app(self, enrolled: Mapping[str, int], requests: Mapping[str, int]) -> Starlette:
        """The API, with what its metrics count."""
        counts = (self._udp.counts, enrolled, requests, self._doors.counts, lambda: self._feed.lag)
        return make_app(
            self._backend,
            self._sites,
            cluster=self._settings.name,
            tallies=Tallies(
                *(*counts, self._pools.standing, self._pools.refused, self._home),
                dropped=self._numbers.dropped,
            ),
            meters=self._meters,
            entry=self._doors.entry,
        )

    def _make_starter(self) -> None:
        """Be able to start modules, those of one's own among them."""
        self._processes = ModuleProcesses(
            self._zygote,
            self._numbers.sampling.beside(self._deliver),
            places={**BUNDLED, **{one.name: one for one in self._settings.own}},
            run_dir=self._logs.directory,
            log_dir=self._logs.log_dir,
            controllers=Controllers(self._settings.controllers, self._backend),
            confine=confinements(self._grounds, self._catalog.manifests.get),
            sampled=self._numbers.sampling.sampled,
        )
        kept = self._secrets
        self._starter = Starter(
            self._processes, kept.find_at_parent, self._deliver, kept.read_at_parent
        )
        self._numbers.sampling.ask(self._starter.call, self._processes.cancel)

    def _enrolment(self, requests: Counter[str]) -> EnrolServer:
        """What takes claims, and the requests of those who are enrolled."""
        settings, channel = self._settings, self._channel
        own = told_to_nodes(self._own)
        asked = RequestServer(channel.admit, channel.answer, requests, may=channel.may)
        server = EnrolServer(
            self._authority,
            self._store,
            Offer(
                *(self._udp.port, settings.hello_ms, settings.modules, own),
                *(self._tree.parents_of, channel.host_of),
            ),
            self._tree,
            asked.converse,
            wall_s=clock.wall_s,
        )
        channel.call_as(server.certificate, settings.address)
        return server

    def _close(self) -> None:
        self._doors.close()
        self._starter.close()
        self._processes.close()
        self._searcher.close()
        self._zygote.close()
        self._udp.close()
        self._store.close()
        self._recorder.close()
        self._numbers.close()

    def _performer(self) -> Performer:
        return Performer(
            call=lambda call: self._starter.call(call, self._inviting.boot_of(call)),
            cancel=self._processes.cancel,
            start=self._starter.start,
            stop=self._starter.stop,
            write=self._store.submit,
            keep=never,
            tell=self._udp.tell,
            ask=self._channel.exchange.send,
            search=self._searcher.search,
            answer=self._backend.answered,
            publish=self._publish,
        )

    def _publish(self, effect: Publish) -> None:
        self._backend.bus.publish(effect.entities, effect.types)
        self._record.changed(effect.entities)
        self._jobs.heed(effect.entities)
        self._sessions.heed(effect.entities)
        self._tree.changed(effect.entities)
        self._numbers.changed(effect.entities)
