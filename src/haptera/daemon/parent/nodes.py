"""The ways between a parent and its nodes: sealed datagrams, requests over TLS, and enrolment."""

import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator

from haptera.api.serving.server import Server
from haptera.core.engine import Engine
from haptera.daemon.channels.inviting import Inviting
from haptera.daemon.channels.parent_channel import ParentChannel
from haptera.daemon.channels.sessions import Sessions
from haptera.daemon.parent.image_door import image_servers
from haptera.daemon.parent.modules import ParentModules
from haptera.daemon.parent.storage import Storage
from haptera.daemon.parts import told_to_nodes
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.daemon.tree.place import Tree
from haptera.model.events import Event
from haptera.queue.work import WorkAsked, WorkTold
from haptera.runtime import clock
from haptera.runtime.enrolment.enrol_server import EnrolServer, Offer
from haptera.runtime.network.request_server import RequestServer
from haptera.runtime.network.udp import Udp


class NodeLinks:
    """Both sockets are bound already; `work` answers nodes that ask for jobs."""

    def __init__(
        self,
        udp: Udp,
        tls: socket.socket,
        engine: Engine,
        storage: Storage,
        modules: ParentModules,
        deliver: Callable[[Iterable[Event]], None],
        work: Callable[[str, WorkAsked], Awaitable[WorkTold]],
    ) -> None:
        store, authority = storage.store, storage.authority
        self.udp, self._tls = udp, tls
        self._storage, self._modules = storage, modules
        self._table, self._deliver = engine.table, deliver
        self.channel = ParentChannel(
            authority, engine, modules.codec, deliver, clock.wall_s, storage.secrets, work
        )
        boot, declares = engine.side.instance, self.channel.declares
        self.sessions = Sessions(store, udp, self.channel, boot, declares)
        self.inviting = Inviting(store, authority, modules.settings.address)
        # Of nodes over TLS, by what they asked for.
        self.requests = Counter[str]()

    def begin(self, waiting: Callable[[], int], sampled: Callable[..., None]) -> None:
        """Hear datagrams of all that have a session."""
        codec, moved = self._modules.codec, self.sessions.moved
        self.udp.start(codec, self._deliver, moved, waiting, sampled=sampled)
        self.sessions.open()

    async def serve(self, enrolment: EnrolServer, connections_max: int) -> None:
        """Take what comes over TLS, until cancelled."""
        await enrolment.serve(self._tls, connections_max, self.sessions.hosts())

    def image_servers(self, jobs: ParentQueue) -> Iterator[Server]:
        """The servers of images for nodes; none where this parent makes no images."""
        storage, settings = self._storage, self._modules.settings
        return image_servers(settings, storage.authority, self.channel, self._table, jobs)

    def enrolment(self, tree: Tree) -> EnrolServer:
        """The server for claims, and for the requests of enrolled nodes."""
        settings, channel, storage = self._modules.settings, self.channel, self._storage
        own = told_to_nodes(self._modules.own)
        asked = RequestServer(channel.admit, channel.answer, self.requests, may=channel.may)
        server = EnrolServer(
            storage.authority,
            storage.store,
            Offer(
                *(self.udp.port, settings.hello_ms, settings.modules, own),
                *(tree.parents_of, channel.host_of),
            ),
            tree,
            asked.converse,
            wall_s=clock.wall_s,
        )
        channel.call_as(server.certificate, settings.address)
        return server
