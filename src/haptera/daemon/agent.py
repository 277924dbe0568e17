"""`haptera agent`: a node's own side, from its first boot to its power-off."""

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import MS
from haptera.core.state.side import PARENT, Side
from haptera.core.sync.peers import LEASE_FOR
from haptera.daemon.channels.agent_channel import AgentChannel
from haptera.daemon.channels.rekeying import new_boot, rekey
from haptera.daemon.confining import confinements, devices_told, grounds_of_agent
from haptera.daemon.executing.executor import Executor
from haptera.daemon.logs import Logs
from haptera.daemon.parts import (
    ARTEFACTS_PORT,
    HELLO_PORT,
    catalog_of,
    check_values,
    codec_of,
)
from haptera.daemon.queue.agent_side import AgentQueue
from haptera.daemon.respawn import Lives, respawn
from haptera.daemon.samples.sampling import Sampling
from haptera.daemon.tree.moving import Mover
from haptera.kinds.host_port import HostPort
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.model.events import Enrolled
from haptera.model.messages import Message
from haptera.model.parts import Context
from haptera.model.reading import Series
from haptera.model.samples import Measurement
from haptera.modules import BUNDLED
from haptera.queue.capacity import capacity_of
from haptera.runtime import clock
from haptera.runtime.driver import Driver
from haptera.runtime.enrolment.enrol import Enrolment, Invitation, enrol
from haptera.runtime.enrolment.journal import Journal
from haptera.runtime.enrolment.lease_clock import LeaseClock
from haptera.runtime.log import log_to_stderr
from haptera.runtime.network.tls_server import listen
from haptera.runtime.network.udp import Udp
from haptera.runtime.notify import keep_telling
from haptera.runtime.performer import Performer, nobody
from haptera.runtime.processes.forking import LoopZygote, ZygoteClient, exec_zygote, fork_zygote
from haptera.runtime.processes.process import ModuleProcesses
from haptera.runtime.processes.secrets import Starter
from haptera.runtime.search.searcher import Searcher
from haptera.runtime.store.sessions import SavedSession
from haptera.wire.seal import SealRole, Session
from haptera.wire.updates import Codec

INVITATION_BYTES_MAX: Final = 64 << 10

# The source of a node's invitation: its boot, or a parent that is asked.
Invited = Callable[[], Invitation]

_log = logging.getLogger(__name__)


class AgentSettings(msgspec.Struct, frozen=True):
    """Where an agent keeps its files, and the address that it sends and listens from."""

    directory: str
    address: str


class BootArguments(msgspec.Struct, frozen=True):
    """What a booted node is handed, as JSON: its token, its authority, and ADDRESS:PORT."""

    token: str
    ca: str
    parent: str


def agent_process(arguments: Mapping[str, Any], descriptors: list[int]) -> None:
    """Be an agent: a fork target; `arguments["boot"]` is the descriptor with the invitation."""
    # A copy of this process, which has no loop or thread yet, is as good as a new program.
    zygote = fork_zygote()
    settings = msgspec.convert(
        {name: arguments[name] for name in ("directory", "address")}, AgentSettings
    )
    given = _read_all(descriptors[arguments["boot"]]) if "boot" in arguments else None
    invitation = None if given is None else parse_invitation(given)
    run(settings, None if invitation is None else lambda: invitation, zygote)


def run(
    settings: AgentSettings, invited: Invited | None, zygote: ZygoteClient | None = None
) -> None:
    """Run until terminated; only a node without a session is `invited`."""
    log_to_stderr()
    first = [zygote] if zygote is not None else []
    starting = LoopZygote(lambda: first.pop() if first else exec_zygote())
    asyncio.run(_run(settings, invited, starting))


def respawn_and_run(settings: AgentSettings, invited: Invited | None) -> None:
    """Run, and start anew whenever that has ended; nothing is imported again for it."""
    # Most of the time that an agent takes to start, and kept for each that follows. The first
    # process of a machine must not end: who needs what a minOS lacks says so itself.
    for name in BUNDLED:
        with contextlib.suppress(ImportError):
            catalog_of([name])
    respawn()
    # It has the invitation, too, which is worth nothing once there are modules to fork.
    run(settings, invited, fork_zygote())


def parse_invitation(content: bytes) -> Invitation:
    """Read what a boot hands over.

    Raises:
        HapteraError: it is not that.
    """
    try:
        boot = msgspec.json.decode(content, type=BootArguments)
        at = HostPort.parse(boot.parent, None)
        return Invitation((at.host, at.port), boot.token, boot.ca.encode())
    except (ValueError, HapteraError):
        raise HapteraError("this is not an invitation to enrol", do="boot the node again") from None


def _read_all(descriptor: int) -> bytes:
    """The invitation in a descriptor that other processes may have read before."""
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return file.read(INVITATION_BYTES_MAX)


async def _run(settings: AgentSettings, invited: Invited | None, zygote: LoopZygote) -> None:
    agent = _Agent(settings, zygote)
    try:
        await agent.run(invited)
    finally:
        agent.close()


class _Agent:
    """One agent process: a journal, a socket, an engine, and modules."""

    def __init__(self, settings: AgentSettings, zygote: LoopZygote) -> None:
        self._settings = settings
        self._zygote = zygote
        self._early: list[Any] = []
        self._deliver: Callable[[Iterable[Any]], None] = self._early.extend
        self._journal = Journal(Path(settings.directory), lambda done: self._deliver([done]))
        self._lives = Lives(Path(settings.directory))
        # Until then the parent does not hear of this agent: it may be about to die again.
        self._quiet_until = 0
        self._boot = new_boot()
        self._udp = Udp.bind(settings.address, HELLO_PORT)
        self._requests = listen(settings.address, HELLO_PORT)

    def close(self) -> None:
        self._udp.close()
        self._requests.close()
        self._zygote.close()
        self._journal.close()

    async def run(self, invited: Invited | None) -> None:
        enrolment = self._journal.enrolment() or await self._enrol(invited)
        catalog = catalog_of(enrolment.modules, (one.manifest for one in enrolment.own))
        codec = codec_of(catalog)
        engine = self._engine(enrolment, catalog, codec.schema)
        logs = Logs(Path(self._settings.directory), catalog.modules(Context.SELF))
        self._processes = self._modules(enrolment, catalog, logs)
        # A question that its parent can plan and it cannot would have the one wait for the other.
        self._searcher = Searcher(self._zygote, lambda events: self._deliver(events), logs.log_dir)
        driver = Driver(engine)
        self._deliver = driver.deliver
        driver.deliver(self._early)
        self._listen(enrolment, codec, driver)
        channel = self._channel = AgentChannel(
            self._journal,
            engine,
            codec,
            logs,
            driver.deliver,
            local_host=self._settings.address,
            wall_s=clock.wall_s,
        )
        self._starter = Starter(self._processes, channel.find, driver.deliver)
        mover = Mover(enrolment, engine, self._move, channel.reaches, self._confirmed)
        try:
            async with asyncio.TaskGroup() as tasks:
                turns = driver.run(self._performer().each(driver.deliver))
                talk = (
                    channel.exchange.run(),
                    channel.serve(self._requests, self._executor(engine).execute),
                    channel.renew(),
                    rekey(lambda: (PARENT,), self._rekey),
                )
                own = (self._queue(engine).run(), self._lives.run(), keep_telling())
                for work in (turns, *talk, mover.run(), self._sampling.run(), *own):
                    tasks.create_task(work)
        finally:
            self._starter.close()
            self._processes.close()
            self._searcher.close()

    def _modules(self, enrolment: Enrolment, catalog: Catalog, logs: Logs) -> ModuleProcesses:
        own = tuple(one.place for one in enrolment.own)
        grounds = grounds_of_agent(logs.directory, own)
        for line in devices_told(grounds, catalog.manifests):
            _log.warning("%s", line)
        return ModuleProcesses(
            self._zygote,
            self._sampling.beside(lambda events: self._deliver(events)),
            places={**BUNDLED, **{one.name: one for one in own}},
            run_dir=logs.directory,
            log_dir=logs.log_dir,
            confine=confinements(grounds, catalog.manifests.get),
            sampled=self._sampling.sampled,
        )

    def _queue(self, engine: Engine) -> AgentQueue:
        """What asks for jobs, while the node's attributes say that it takes any."""
        node = engine.side.node
        assert node is not None

        def takes() -> bool:
            capacity = capacity_of(engine.table.attributes_of(node))
            return capacity is not None and clock.now_ns() >= self._quiet_until

        return AgentQueue(self._channel.ask, takes, Path(self._settings.directory), node)

    def _executor(self, engine: Engine) -> Executor:
        """What runs commands here for people."""
        node = engine.side.node
        assert node is not None

        def known() -> Iterable[EntityId]:
            return (row.id for row in engine.table)

        return Executor(self._zygote, Path(self._settings.directory), node, known)

    async def _enrol(self, invited: Invited | None) -> Enrolment:
        if invited is None:
            raise HapteraError(
                "this node has no session and no invitation",
                where=self._settings.directory,
                do="boot it through its parent, or join it: haptera setup agent --from FILE",
            )
        enrolment = await enrol(
            await asyncio.to_thread(invited),
            self._journal.key(),
            hello_port=self._udp.port,
            local_host=self._settings.address,
        )
        self._journal.save_enrolment(enrolment)
        return enrolment

    def _engine(self, enrolment: Enrolment, catalog: Catalog, schema: int) -> Engine:
        side = Side(
            Context.SELF,
            enrolment.node,
            self._boot,
            clock.kernel_boot(),
            enrolment.hello_ms * MS,
            secrets.SystemRandom().random,
        )
        stored = self._journal.load()
        check_values(stored, f"{self._settings.directory}/desired.json")
        engine = Engine(side, catalog, stored, schema, clock.now_ns())
        self._sampling = Sampling(engine, self._tell_measured)
        self._sampling.ask(
            lambda call: self._starter.call(call), lambda call: self._processes.cancel(call)
        )
        return engine

    def _listen(self, enrolment: Enrolment, codec: Codec, driver: Driver) -> None:
        saved = enrolment.session
        session = Session(saved.agreement, SealRole.CHILD, self._boot, saved.peer_boot)
        length_ns = LEASE_FOR * enrolment.hello_ms * MS // 10
        lease_time = LeaseClock(Path(self._settings.directory), length_ns)
        quiet_s = self._lives.be_quiet(enrolment.hello_ms / 1_000)
        self._quiet_until = clock.now_ns() + int(quiet_s * 1_000 * MS)
        self._udp.start(codec, driver.deliver, self._moved, driver.waiting, lease_time.confirmed)
        self._udp.add(PARENT, session, saved.address)
        self._keep_uplink()

    def _moved(self, peer: str, address: tuple[str, int], boot: int | None) -> None:
        """The parent's process or address on record changed: the next process must know."""
        enrolment = self._journal.enrolment()
        assert enrolment is not None
        session = replace(enrolment.session, address=address, peer_boot=boot)
        self._journal.save_session(session)
        self._keep_uplink()

    def _move(self, host: str) -> None:
        """Speak with another parent, by keys of their own: nothing said before counts there."""
        enrolment = self._journal.enrolment()
        assert enrolment is not None
        agreement, address = enrolment.session.agreement, (host, HELLO_PORT)
        self._begin_anew(replace(enrolment.session, address=address, peer_boot=None))
        self._moved(PARENT, address, None)
        self._deliver([Enrolled(PARENT, agreement.incarnation)])

    def _rekey(self, _: str) -> None:
        enrolment = self._journal.enrolment()
        assert enrolment is not None
        self._begin_anew(enrolment.session)

    def _begin_anew(self, saved: SavedSession) -> None:
        """Be another process to the parent, with keys of its own."""
        boot = new_boot()
        session = Session(saved.agreement, SealRole.CHILD, boot, saved.peer_boot)
        self._udp.add(PARENT, session, saved.address)
        self._channel.exchange.boots[PARENT] = boot

    def _tell(self, peer: str, message: Message) -> None:
        if clock.now_ns() >= self._quiet_until:
            self._udp.tell(peer, message)

    def _tell_measured(self, entity: EntityId, age_s: float, values: dict[Series, float]) -> None:
        """Tell the parent once: what is lost is lost."""
        if clock.now_ns() >= self._quiet_until:
            told = Measurement(entity.kind, entity.name, int(age_s * 1_000), values)
            self._udp.tell_measured(PARENT, told)

    def _confirmed(self) -> int:
        return self._udp.confirmed(PARENT)

    def _keep_uplink(self) -> None:
        """Have modules know where the parent is, and as whom they call it."""
        enrolment = self._journal.enrolment()
        assert enrolment is not None
        self._journal.keep_uplink(enrolment.session.address[0], ARTEFACTS_PORT)

    def _performer(self) -> Performer:
        return Performer(
            call=self._starter.call,
            cancel=self._processes.cancel,
            start=self._starter.start,
            stop=self._starter.stop,
            write=self._journal.submit,
            keep=self._journal.keep,
            tell=self._tell,
            ask=self._channel.exchange.send,
            search=self._searcher.search,
            answer=nobody,
            publish=lambda effect: self._sampling.changed(effect.entities),
        )
