"""The parent's side of enrolment: takes claims over TLS and makes nodes its children."""

import asyncio
import contextlib
import hashlib
import logging
import socket
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from cryptography import x509

from haptera.runtime.enrolment.claims import (
    EnrolmentClaim,
    EnrolmentRefusal,
    EnrolmentRefused,
    Granted,
    hear_said,
)
from haptera.runtime.enrolment.enrol import ENROL_WITHIN_S
from haptera.runtime.identity.pki import (
    Authority,
    issue_node,
    issue_parent,
    parse_request,
    public_key_bytes,
)
from haptera.runtime.network.one_frame import pack
from haptera.runtime.network.own_certificate import OwnCertificate
from haptera.runtime.network.tls import enrolling_context
from haptera.runtime.network.tls_server import CONNECTIONS_MAX, Converse, Talk, TlsServer
from haptera.runtime.processes.own_modules import OwnModule
from haptera.runtime.store import sessions_sql
from haptera.runtime.store.sessions import SavedSession
from haptera.runtime.store.sessions_sql import Claimed
from haptera.runtime.store.sqlite_writer import Failure
from haptera.runtime.store.store import Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Offer:
    """The invitation of every child: where to send hellos, how often, and which modules it runs.

    `parents` are the addresses of all parents that a node may have, in its order; `host` is where
    others reach it.
    """

    hello_port: int
    hello_ms: int
    modules: tuple[str, ...]
    own: tuple[OwnModule, ...] = ()
    parents: Callable[[str], tuple[str, ...]] = lambda _: ()
    host: Callable[[str], str] = lambda node: node


class EnrolmentListener(Protocol):
    """Who hears what becomes of claims."""

    def enrolled(self, saved: SavedSession, /) -> None:
        """A session is durable; the child hears of it later, so its first hello finds it."""

    async def doubted(self, node: str, incarnation: int, /) -> None:
        """A second one has claimed the token by which this incarnation of a node came."""


class EnrolServer:
    """Serves claims until cancelled; `counts` says how they ended, and `listener` is called.

    `others` converse with who shows a certificate.
    """

    def __init__(
        self,
        authority: Authority,
        store: Store,
        offer: Offer,
        listener: EnrolmentListener,
        others: Converse,
        *,
        wall_s: Callable[[], float],
        within_s: float = ENROL_WITHIN_S,
    ) -> None:
        self._authority = authority
        self._store = store
        self._offer = offer
        self._listener = listener
        self._wall_s = wall_s
        self._within_s = within_s
        self._others = others
        self.certificate = OwnCertificate(partial(issue_parent, authority), wall_s)
        self.counts: Counter[str] = Counter()

    async def serve(
        self,
        listener: socket.socket,
        connections_max: int = CONNECTIONS_MAX,
        known: Iterable[str] = (),
    ) -> None:
        """Take claims, without a certificate: a node that has one is enrolled already.

        `known` are the addresses of those who have a session.
        """
        context = enrolling_context(self.certificate.identity, self._authority.ca_pem)
        server = TlsServer(
            self.certificate.shown_by(context),
            self._converse,
            self.counts,
            handshake_within_s=self._within_s,
            connections_max=connections_max,
            known=known,
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.certificate.run())
            await server.serve(listener)

    async def _converse(self, talk: Talk) -> None:
        if talk.writer.get_extra_info("peercert"):
            await self._others(talk)
            return
        async with asyncio.timeout(self._within_s):
            said = await hear_said(talk.reader)
        if not isinstance(said, EnrolmentClaim):
            self.counts["no claim"] += 1
            return
        talk.heard()
        # No deadline here: once it is decided, the daemon must hear of it.
        answer = await self._answer(said, talk.host)
        if isinstance(answer, Granted):
            talk.let_in()
        async with asyncio.timeout(self._within_s):
            await _send(talk.writer, answer)

    async def _answer(self, claim: EnrolmentClaim, host: str) -> Granted | EnrolmentRefused:
        request = parse_request(claim.request)
        if request is None:
            self.counts["bad request"] += 1
            return EnrolmentRefused(EnrolmentRefusal.CLAIM)
        key = public_key_bytes(request)
        outcome = await asyncio.wrap_future(
            self._store.claim(
                claim.token,
                key,
                cluster=self._authority.cluster,
                address=(host, claim.hello_port),
            )
        )
        match outcome:
            case Claimed(session, again):
                self._note(session, key, claim.token.id, host, "again" if again else "enrolled")
                if not again:
                    self._listener.enrolled(session)
                return self._granted(session, request)
            case sessions_sql.ClaimRefused():
                self._note_refusal(outcome, key, host)
                if outcome.node is not None and outcome.incarnation is not None:
                    await self._listener.doubted(outcome.node, outcome.incarnation)
                return EnrolmentRefused(EnrolmentRefusal.TOKEN)
            case Failure(text):
                self.counts["not stored"] += 1
                _log.error("enrolment from %s postponed: %s", host, text)
                return EnrolmentRefused(EnrolmentRefusal.LATER)

    def _granted(self, session: SavedSession, request: x509.CertificateSigningRequest) -> Granted:
        agreed, host = session.agreement, self._offer.host(session.peer)
        return Granted(
            node=session.peer,
            certificate=issue_node(
                self._authority, request, agreed.node, agreed.incarnation, host, self._wall_s()
            ),
            ca=self._authority.ca_pem,
            agreement=agreed,
            hello_port=self._offer.hello_port,
            hello_ms=self._offer.hello_ms,
            modules=self._offer.modules,
            own=self._offer.own,
            parents=self._offer.parents(session.peer),
        )

    def _note(self, session: SavedSession, key: bytes, token: str, host: str, how: str) -> None:
        self.counts[how] += 1
        _log.info(
            "node %s %s: incarnation %d, level %s, token %s, key %s, from %s",
            session.peer,
            how,
            session.agreement.incarnation,
            session.level or "unknown",
            token,
            _fingerprint(key),
            host,
        )

    def _note_refusal(self, refused: sessions_sql.ClaimRefused, key: bytes, host: str) -> None:
        """Count it; only one who knew the secret may write to the log."""
        self.counts[refused.reason] += 1
        if refused.node is not None:
            _log.warning(
                "node %s refused: %s, token %s, key %s, from %s",
                refused.node,
                refused.reason,
                refused.token,
                _fingerprint(key),
                host,
            )


async def _send(writer: asyncio.StreamWriter, answer: Granted | EnrolmentRefused) -> None:
    writer.write(pack(answer))
    writer.close()
    # A child that has its answer may hang up without a farewell.
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


def _fingerprint(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()[:16]
