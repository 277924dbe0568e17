"""What a parent and its agents ask each other, on the parent's side."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Final
from uuid import UUID

import msgspec

from haptera.core.engine import Engine
from haptera.daemon.channels.exchange import Exchange
from haptera.kinds import module, system
from haptera.kinds.node import address
from haptera.model.declared.secrets import Keeper, Reference, references
from haptera.model.entity import node_id
from haptera.model.errors import HapteraError
from haptera.model.events import Event
from haptera.queue.work import WorkAsked, WorkTold
from haptera.runtime.identity.pki import Authority, issue_node, parse_request
from haptera.runtime.network.own_certificate import OwnCertificate
from haptera.runtime.network.peer_client import ASK_WITHIN_S, Asker, Party
from haptera.runtime.network.peer_messages import (
    Answer,
    ExecAnswer,
    ExecAsked,
    RenewAsked,
    Renewed,
    Request,
    SecretAsked,
    SecretTold,
    Unable,
)
from haptera.runtime.network.tls import (
    Certificate,
    ended_ago_s,
    is_node,
    node_of,
    parent_context,
)
from haptera.runtime.processes.secrets import SecretStore
from haptera.runtime.store.sessions import SavedSession
from haptera.wire.updates import Codec

# Who was silent for longer after its certificate ended must boot: nobody mends a cluster for so
# long, and a key that was copied from a node is good for no longer.
RENEWED_LATE_S_MAX: Final = 30 * 86_400.0


class ParentChannel:
    """Asks agents, and answers those whose certificate is of their present incarnation.

    One that has ended can still be renewed for a while.
    """

    def __init__(
        self,
        authority: Authority,
        engine: Engine,
        codec: Codec,
        deliver: Callable[[Iterable[Event]], None],
        wall_s: Callable[[], float],
        secrets: SecretStore,
        work: Callable[[str, WorkAsked], Awaitable[WorkTold]],
    ) -> None:
        self._authority = authority
        self._engine = engine
        self._secrets = secrets
        self._give = work
        self._wall_s = wall_s
        self.exchange = Exchange(engine, codec, self.ask, deliver)
        self._sessions: dict[str, SavedSession] = {}
        self._names: dict[UUID, str] = {}

    def call_as(self, certificate: OwnCertificate, local_host: str) -> None:
        """Ask with this certificate, from this address; needs a running loop."""
        self.certificate = certificate
        context = parent_context(self._authority.ca_pem, certificate.identity)
        certificate.shown_by(context)
        self._asker = Asker(lambda: context, local_host)

    def join(self, saved: SavedSession) -> None:
        """A child has this session, from now on or at this address."""
        self._sessions[saved.peer] = saved
        self._names[saved.agreement.node] = saved.peer

    def leave(self, saved: SavedSession) -> None:
        """A child has no session any more."""
        del self._sessions[saved.peer]
        del self._names[saved.agreement.node]

    def declares(self, node: str) -> bool:
        """Whether a node of this name is declared now."""
        row = self._engine.table.get(node_id(node))
        return row is not None and row.desired.declared and not row.desired.leaving

    def host_of(self, node: str) -> str:
        """The host at which others reach a node: its declared address, or else its name."""
        row = self._engine.table.get(node_id(node))
        return node if row is None else row.desired.attributes.get(address.name, node)

    def admit(self, certificate: Certificate) -> str | None:
        """The child that may ask with this certificate."""
        told = node_of(certificate, self._authority.cluster)
        name = None if told is None else self._names.get(told[0])
        if told is None or name is None:
            return None
        if ended_ago_s(certificate, self._wall_s()) > RENEWED_LATE_S_MAX:
            return None
        present = self._sessions[name].agreement.incarnation == told[1]
        return name if present and self.declares(name) else None

    def may(self, certificate: Certificate, request: Request) -> bool:
        """Whether it may ask this: what ended is good for being renewed only."""
        ended = ended_ago_s(certificate, self._wall_s()) >= 0
        return isinstance(request, RenewAsked) or not ended

    async def answer(self, caller: str, request: Request) -> Answer:
        """The messages to a child."""
        match request:
            case RenewAsked(csr):
                return self._renewed(caller, csr)
            case SecretAsked(name):
                return self._secret(caller, name)
            case WorkAsked():
                return await self._work(caller, request)
            case _:
                return self.exchange.answer(caller, request)

    def images_of(self, node: str) -> list[str]:
        """The images that systems on a node are to run or to keep ready, as these name them."""
        on_it = [row for row in self._engine.table.on(node) if row.kind is system.kind]
        names = (system.image.name, system.spare.name)
        named = (row.desired.values.get(name) for row in on_it for name in names)
        return [str(one.value) for one in named if one is not None]

    async def ask(self, node: str, request: Request, within_s: float = ASK_WITHIN_S) -> Answer:
        """Ask a node's agent."""
        saved = self._sessions.get(node)
        if saved is None:
            return Unable(f"the agent of {node} has not enrolled yet")
        return await self._asker.ask(_agent(node, saved), request, within_s)

    def execute(self, node: str, request: ExecAsked) -> AsyncGenerator[ExecAnswer, None]:
        """Have a node's agent run a command; what comes of it."""
        saved = self._sessions.get(node)
        if saved is None:
            return _unable(f"the agent of {node} has not enrolled yet")
        return self._asker.execute(_agent(node, saved), request)

    async def _work(self, caller: str, asked: WorkAsked) -> Answer:
        try:
            return await self._give(caller, asked)
        except HapteraError as error:
            return Unable(str(error))

    def _secret(self, caller: str, name: str) -> Answer:
        """A secret, given only to a node with a desired module that names it."""
        wanted = Reference(Keeper.PARENT, name)
        users = [
            one.entity
            for one in self._engine.table.stored()
            if one.entity.kind == module.kind.name and one.entity.node == caller
            if (held := one.desired.get(module.settings.name)) is not None
            if wanted in references(msgspec.json.decode(str(held.value)))
        ]
        refused = f"no module on {caller} is to have the secret {name}"
        for user in users:
            try:
                return SecretTold(self._secrets.read(user, wanted))
            except HapteraError as error:
                refused = str(error)
        return Unable(refused)

    def _renewed(self, caller: str, csr: bytes) -> Answer:
        request = parse_request(csr)
        if request is None:
            return Unable("this is not a certificate request")
        agreed, host = self._sessions[caller].agreement, self.host_of(caller)
        return Renewed(
            issue_node(
                self._authority, request, agreed.node, agreed.incarnation, host, self._wall_s()
            )
        )


def _agent(node: str, saved: SavedSession) -> Party:
    agreement = saved.agreement
    return Party(
        f"the agent of {node}",
        saved.address,
        lambda certificate: is_node(certificate, agreement.cluster, agreement.node),
    )


async def _unable(text: str) -> AsyncGenerator[ExecAnswer, None]:
    yield Unable(text)
