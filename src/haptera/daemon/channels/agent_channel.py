"""What a parent and an agent ask each other, on the agent's side; its certificate is renewed."""

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from haptera.core.engine import Engine
from haptera.core.state.side import PARENT
from haptera.core.views.query import detail
from haptera.daemon.channels.exchange import Exchange
from haptera.daemon.logs import Logs
from haptera.daemon.parts import HELLO_PORT
from haptera.model.declared.secrets import Keeper, Reference
from haptera.model.errors import Code, HapteraError
from haptera.model.events import Asked, Event
from haptera.runtime import clock
from haptera.runtime.enrolment.journal import Journal
from haptera.runtime.identity.pki import half_life_s, is_for_any_node, make_request
from haptera.runtime.network.peer_client import ASK_WITHIN_S, Asker, Party
from haptera.runtime.network.peer_messages import (
    Answer,
    EntityAsked,
    EntityTold,
    LogAsked,
    Noted,
    RenewAsked,
    Renewed,
    Request,
    RetryAsked,
    SchemaAsked,
    SecretAsked,
    SecretTold,
    Unable,
)
from haptera.runtime.network.request_server import CONVERSE_WITHIN_S, Execute, RequestServer
from haptera.runtime.network.tls import Certificate, client_context, is_parent, server_context
from haptera.runtime.network.tls_server import TlsServer
from haptera.runtime.processes.secrets import read_here
from haptera.sdk.boundary import Boundary
from haptera.wire.updates import Codec

# How often it is seen whether the certificate is past its half life, and tried anew if so.
RENEWAL_EVERY_S: Final = 600.0

_log = logging.getLogger(__name__)


class AgentChannel:
    """Answers the parent, and asks it, for an agent that has enrolled.

    `counts` says whom it answered and whom not. `wall_s` tells when a certificate is to be
    renewed. Needs a running loop.
    """

    def __init__(
        self,
        journal: Journal,
        engine: Engine,
        codec: Codec,
        logs: Logs,
        deliver: Callable[[Iterable[Event]], None],
        *,
        local_host: str,
        wall_s: Callable[[], float],
    ) -> None:
        self._journal = journal
        enrolment = journal.enrolment()
        assert enrolment is not None
        self._cluster = enrolment.session.agreement.cluster
        self._engine = engine
        self._logs = logs
        self._deliver = deliver
        self._wall_s = wall_s
        self._identity = journal.keep_identity(enrolment.certificate)
        self._context = server_context(self._identity, enrolment.ca, ssl.CERT_REQUIRED)
        self._asker = Asker(lambda: client_context(enrolment.ca, self._identity), local_host)
        self.exchange = Exchange(engine, codec, self.ask, deliver)
        self.counts: Counter[str] = Counter()

    async def serve(self, listener: socket.socket, execute: Execute | None = None) -> None:
        """Answer until cancelled; what the parent wants executed is `execute`'s."""
        server = RequestServer(self._admit, self.answer, self.counts, execute=execute)
        await TlsServer(
            self._context, server.converse, self.counts, handshake_within_s=CONVERSE_WITHIN_S
        ).serve(listener)

    async def answer(self, _caller: str, request: Request) -> Answer:
        """The messages to the parent."""
        table = self._engine.table
        match request:
            case EntityAsked(entity):
                row = table.get(entity)
                if row is None:
                    return Unable(f"{entity} is not known there")
                return EntityTold(detail(row, clock.now_ns()))
            case RetryAsked(entity):
                self._deliver([Asked(entity)])
                return Noted()
            case LogAsked():
                return self._logs.answer(request, (row.id for row in table))
            case _:
                return self.exchange.answer(PARENT, request)

    async def ask(self, _peer: str, request: Request, within_s: float = ASK_WITHIN_S) -> Answer:
        """Ask the parent, where it was last heard."""
        enrolment = self._journal.enrolment()
        assert enrolment is not None
        party = Party(
            "the parent",
            enrolment.session.address,
            lambda certificate: is_parent(certificate, self._cluster),
        )
        return await self._asker.ask(party, request, within_s)

    async def reaches(self, host: str) -> bool:
        """Whether a parent answers there that knows this node."""
        party = Party(
            "a parent",
            (host, HELLO_PORT),
            lambda certificate: is_parent(certificate, self._cluster),
        )
        return not isinstance(await self._asker.ask(party, SchemaAsked()), Unable)

    async def find(self, _module: str, reference: Reference) -> str:
        """The value of a secret that a module's settings name; the parent knows who may.

        Raises:
            HapteraError: it cannot be had.
        """
        if reference.keeper is not Keeper.PARENT:
            return read_here(reference)
        match await self.ask(PARENT, SecretAsked(reference.name)):
            case SecretTold(value):
                return value
            case Unable(text):
                raise HapteraError(text)
            case _:
                raise HapteraError(
                    f"secret {reference}: the parent answered with something else",
                    code=Code.VERSION_MISMATCH,
                )

    async def renew(self, every_s: float = RENEWAL_EVERY_S) -> None:
        """Have the certificate renewed once half of its life is over, until cancelled."""
        while True:
            with Boundary("the renewal of the certificate"):
                await self._renew_if_due()
            await asyncio.sleep(every_s)

    async def _renew_if_due(self) -> None:
        enrolment = self._journal.enrolment()
        assert enrolment is not None
        held = enrolment.certificate
        if self._wall_s() < half_life_s(held) and is_for_any_node(held, self._cluster):
            return
        answer = await self.ask(PARENT, RenewAsked(make_request(self._journal.key())))
        match answer:
            case Renewed(certificate):
                self._take(certificate)
            case Unable(text):
                _log.warning("the certificate is not renewed yet: %s", text)
            case _:
                _log.warning(
                    "the certificate is not renewed yet: the parent answered with something else"
                )

    def _take(self, certificate: bytes) -> None:
        """Serve and ask with the new certificate, and have the next process do so."""
        try:
            self._journal.keep_identity(certificate)
            self._context.load_cert_chain(self._identity)
        except (OSError, ValueError) as error:
            _log.warning("the new certificate cannot be used: %s", error)
            return
        self._journal.save_certificate(certificate)
        _log.info("the certificate was renewed")

    def _admit(self, certificate: Certificate) -> str | None:
        return PARENT if is_parent(certificate, self._cluster) else None
