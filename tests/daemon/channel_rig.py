"""A parent's and an agent's end of the channel over real TLS on loopback, engines included."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from uuid import UUID

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.core.state.side import PARENT, Side
from haptera.daemon.channels.agent_channel import AgentChannel
from haptera.daemon.channels.parent_channel import ParentChannel
from haptera.daemon.executing.executor import Executor
from haptera.daemon.logs import Logs
from haptera.kinds import KINDS
from haptera.model.changes import Desired, Stored, StoredEntity
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Event
from haptera.model.parts import Context
from haptera.modules import load
from haptera.queue.work import WorkAsked, WorkTold
from haptera.runtime import clock
from haptera.runtime.enrolment.enrol import Enrolment
from haptera.runtime.enrolment.journal import Journal
from haptera.runtime.identity.pki import (
    Authority,
    issue_node,
    issue_parent,
    make_request,
    open_authority,
    parse_request,
)
from haptera.runtime.network.own_certificate import OwnCertificate
from haptera.runtime.network.request_server import RequestServer
from haptera.runtime.network.tls import enrolling_context
from haptera.runtime.network.tls_server import TlsServer, listen
from haptera.runtime.processes.forking import LoopZygote, exec_zygote
from haptera.runtime.processes.secrets import SecretStore
from haptera.runtime.store.sessions import SavedSession
from haptera.wire.seal import Agreement
from haptera.wire.updates import Codec

HOST, NODE_HOST = "127.0.0.1", "127.0.0.2"
WITHIN_S = 120.0
WEB = EntityId("service", "web", "n01")


@dataclass
class Wall:
    """Wall time that a test can move."""

    ahead_s: float = 0.0

    def __call__(self) -> float:
        return clock.wall_s() + self.ahead_s


@dataclass
class Rig:
    """Both ends, and how each counts what came to it."""

    wall: Wall
    authority: Authority
    parent: ParentChannel
    parent_counts: Counter[str]
    parent_engine: Engine
    shown: OwnCertificate
    session: SavedSession
    journal: Journal
    agent: AgentChannel
    agent_engine: Engine
    home: Path
    heard: tuple[list[Event], list[Event]]
    codecs: tuple[Codec, ...]


async def no_work(_node: str, _asked: WorkAsked) -> WorkTold:
    """A queue in which nothing waits."""
    return WorkTold()


def agreement(authority: Authority, node: int = 1, incarnation: int = 1) -> Agreement:
    return Agreement(b"s" * 32, authority.cluster, UUID(int=node), incarnation, 1, 2)


def certificate(authority: Authority, journal: Journal, agreed: Agreement, at_s: float) -> bytes:
    request = parse_request(make_request(journal.key()))
    assert request is not None
    return issue_node(authority, request, agreed.node, agreed.incarnation, NODE_HOST, at_s)


def engine_of(node: str | None, services: int, version: str | None = None) -> Engine:
    wanted = {"run": Desired("running", "site")}
    entities = [StoredEntity(node_id("n01"), {"platform": "labnode"}, "site", {}, 1)]
    for at in range(services):
        name = "web" if at == 0 else f"web{at}"
        entities.append(StoredEntity(EntityId("service", name, "n01"), {}, "site", wanted, 2 + at))
    context = Context.PARENT if node is None else Context.SELF
    instance = 0xA1 if node is None else 0xB1
    side = Side(context, node, instance, "boot", S)
    manifests = [load(name).manifest() for name in ("labnode", "service")]
    if version is not None:
        other = tuple(replace(one, cost=2) for one in manifests[1].steps)
        manifests[1] = replace(manifests[1], version=version, steps=other)
    catalog = Catalog(KINDS, manifests)
    schema = 0x51 if version is None else 0x52
    peer = PARENT if node is not None else "n01"
    return Engine(
        side, catalog, Stored(7, 1 + services, entities, [], {peer: 1}), schema, clock.now_ns()
    )


@contextlib.asynccontextmanager
async def rig(
    place: Path, wall: Wall | None = None, services: int = 1, version: str | None = None
) -> AsyncIterator[Rig]:
    """Node n01 in its first incarnation, and its parent; both serve."""
    wall = wall or Wall()
    authority = open_authority(place / "p", wall())
    shown = OwnCertificate(partial(issue_parent, authority), wall)
    with contextlib.ExitStack() as stack:
        parent_socket = stack.enter_context(contextlib.closing(listen(HOST, 0)))
        agent_socket = stack.enter_context(contextlib.closing(listen(NODE_HOST, 0)))
        journal = Journal(place / "n01", lambda _: None)
        stack.callback(journal.close)
        agreed = agreement(authority)
        journal.save_enrolment(
            Enrolment(
                "n01",
                SavedSession(PARENT, agreed, parent_socket.getsockname()),
                certificate(authority, journal, agreed, wall()),
                authority.ca_pem,
                1000,
                ("service",),
            )
        )
        engines = engine_of(None, services), engine_of("n01", services, version)
        codecs = tuple(Codec(KINDS.values(), one.neighbours.schema) for one in engines)
        heard: tuple[list[Event], list[Event]] = [], []
        parent = ParentChannel(
            authority, engines[0], codecs[0], heard[0].extend, wall, SecretStore(place), no_work
        )
        parent.call_as(shown, HOST)
        session = SavedSession("n01", agreed, agent_socket.getsockname())
        parent.join(session)
        agent = AgentChannel(
            journal,
            engines[1],
            codecs[1],
            Logs(place / "n01", ("service",)),
            heard[1].extend,
            local_host=NODE_HOST,
            wall_s=wall,
        )
        zygote = LoopZygote(lambda: exec_zygote(["haptera.daemon.executing.keeper"]))
        stack.callback(zygote.close)
        executor = Executor(
            zygote, place / "n01", "n01", lambda: [row.id for row in engines[1].table]
        )
        counts: Counter[str] = Counter()
        async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
            requests = RequestServer(parent.admit, parent.answer, counts, may=parent.may)
            context = shown.shown_by(enrolling_context(shown.identity, authority.ca_pem))
            server = TlsServer(context, requests.converse, counts, handshake_within_s=WITHIN_S)
            serving = [
                tasks.create_task(server.serve(parent_socket)),
                tasks.create_task(agent.serve(agent_socket, executor.execute)),
                tasks.create_task(parent.exchange.run()),
                tasks.create_task(agent.exchange.run()),
            ]
            yield Rig(
                wall, authority, parent, counts, engines[0], shown, session,
                journal, agent, engines[1], place / "n01", heard, codecs,
            )  # fmt: skip
            for task in serving:
                task.cancel()
