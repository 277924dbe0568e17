"""The parent's side of enrolment: takes claims over TLS and makes nodes its children."""

import asyncio
import contextlib
import hashlib
import logging
import os
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cryptography import x509

from haptera.model.errors import HapteraError
from haptera.runtime import sessions_sql
from haptera.runtime.claims import SAID_BYTES_MAX, Claim, Granted, Refusal, Refused, hear, pack
from haptera.runtime.enrol import ENROL_WITHIN_S
from haptera.runtime.pki import Authority, issue_node, issue_parent, parse_request, public_key_bytes
from haptera.runtime.sessions import SavedSession
from haptera.runtime.sessions_sql import Claimed
from haptera.runtime.store import Store
from haptera.runtime.tls import server_context
from haptera.runtime.writer import Failure

CLAIMS_AT_ONCE_MAX: Final = 64
BACKLOG_MAX: Final = 1024
# When the process has no descriptor left, accepting is tried again this much later.
ACCEPT_AGAIN_S: Final = 0.1
_SHUTDOWN_WITHIN_S: Final = 1.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Offer:
    """What every child is told: where to send hellos, how often, and which modules it runs."""

    hello_port: int
    hello_ms: int
    modules: tuple[str, ...]


def listen(host: str, port: int) -> socket.socket:
    """A socket to serve enrolment on; port 0 takes a free one.

    Raises:
        HapteraError: there is no such address, or its port is in use.
    """
    try:
        listener = socket.create_server((host, port), backlog=BACKLOG_MAX)
    except OSError as error:
        raise HapteraError(
            # The socket module's own text would name the address again.
            f"cannot be listened on: {os.strerror(error.errno or 0)}",
            where=f"{host}:{port}/tcp",
            do="stop what uses it, or give another address or port",
        ) from error
    listener.settimeout(0)
    return listener


class EnrolServer:
    """Serves claims until cancelled; `counts` says how they ended.

    `enrolled` hears of each new session once it is durable and before the child does, so that
    its first hello finds it.
    """

    def __init__(
        self,
        authority: Authority,
        store: Store,
        offer: Offer,
        enrolled: Callable[[SavedSession], None],
        *,
        wall_s: Callable[[], float],
        within_s: float = ENROL_WITHIN_S,
    ) -> None:
        self._authority = authority
        self._store = store
        self._offer = offer
        self._enrolled = enrolled
        self._wall_s = wall_s
        self._within_s = within_s
        self._context = server_context(issue_parent(authority, wall_s()))
        self.counts: Counter[str] = Counter()

    async def serve(self, listener: socket.socket) -> None:
        """Take claims, so many at once; the rest wait in the socket's backlog."""
        slots = asyncio.Semaphore(CLAIMS_AT_ONCE_MAX)
        async with asyncio.TaskGroup() as group:
            while True:
                await slots.acquire()
                connection, address = await _accept(listener)
                task = group.create_task(self._serve(connection, address[0]))
                task.add_done_callback(lambda _: slots.release())

    async def _serve(self, connection: socket.socket, host: str) -> None:
        try:
            async with asyncio.timeout(self._within_s):
                reader, writer = await self._open(connection)
        except OSError:  # a time-out too
            self.counts["no handshake"] += 1
            return
        try:
            async with asyncio.timeout(self._within_s):
                said = await hear(reader)
            if isinstance(said, Claim):
                # No deadline here: once it is decided, the daemon must hear of it.
                answer = await self._answer(said, host)
                async with asyncio.timeout(self._within_s):
                    await _send(writer, answer)
            else:
                self.counts["no claim"] += 1
        except OSError:
            self.counts["hung up"] += 1
        finally:
            writer.transport.abort()

    async def _open(
        self, connection: socket.socket
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Like `asyncio.start_server`, but for one accepted connection, its handshake counted."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=SAID_BYTES_MAX, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            connection,
            ssl=self._context,
            ssl_handshake_timeout=self._within_s,
            ssl_shutdown_timeout=_SHUTDOWN_WITHIN_S,
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def _answer(self, claim: Claim, host: str) -> Granted | Refused:
        request = parse_request(claim.request)
        if request is None:
            self.counts["bad request"] += 1
            return Refused(Refusal.CLAIM)
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
                    self._enrolled(session)
                return self._granted(session, request)
            case sessions_sql.Refused():
                self._note_refusal(outcome, key, host)
                return Refused(Refusal.TOKEN)
            case Failure(text):
                self.counts["not stored"] += 1
                _log.error("enrolment from %s put off: %s", host, text)
                return Refused(Refusal.LATER)

    def _granted(self, session: SavedSession, request: x509.CertificateSigningRequest) -> Granted:
        node = session.agreement.node
        return Granted(
            node=session.peer,
            certificate=issue_node(self._authority, request, node, self._wall_s()),
            ca=self._authority.ca_pem,
            agreement=session.agreement,
            hello_port=self._offer.hello_port,
            hello_ms=self._offer.hello_ms,
            modules=self._offer.modules,
        )

    def _note(self, session: SavedSession, key: bytes, token: str, host: str, how: str) -> None:
        self.counts[how] += 1
        _log.info(
            "node %s %s: incarnation %d, token %s, key %s, from %s",
            session.peer,
            how,
            session.agreement.incarnation,
            token,
            _fingerprint(key),
            host,
        )

    def _note_refusal(self, refused: sessions_sql.Refused, key: bytes, host: str) -> None:
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


async def _send(writer: asyncio.StreamWriter, answer: Granted | Refused) -> None:
    writer.write(pack(answer))
    writer.close()
    # A child that has its answer may hang up without a farewell.
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


async def _accept(listener: socket.socket) -> tuple[socket.socket, tuple[str, int]]:
    loop = asyncio.get_running_loop()
    while True:
        try:
            return await loop.sock_accept(listener)
        except OSError as error:
            _log.warning("enrolment: no connection can be accepted: %s", error.strerror)
            await asyncio.sleep(ACCEPT_AGAIN_S)


def _fingerprint(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()[:16]
