"""Answering requests over TLS, where the certificate says that the caller may ask."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from haptera.runtime.network.one_frame import pack
from haptera.runtime.network.peer_client import ASKED_AT_ONCE_MAX
from haptera.runtime.network.peer_messages import (
    Answer,
    ExecAsked,
    Request,
    Unable,
    hear_request,
)
from haptera.runtime.network.tls import Certificate
from haptera.runtime.network.tls_server import Talk

# From the end of the handshake to the last byte of the answer.
CONVERSE_WITHIN_S: Final = 10.0
# So many connections of one caller, whose process may have just been started again; the next ones
# are hung up on.
OF_ONE_CALLER_MAX: Final = 2 * ASKED_AT_ONCE_MAX

_log = logging.getLogger(__name__)

# Carries out what takes longer than an answer, and reports it on this connection.
Execute = Callable[[ExecAsked, Talk], Awaitable[None]]
# Who asks, by name, as a verified certificate says; None: nobody who may.
Admit = Callable[[Certificate], str | None]
# Whether who was admitted may ask this with their certificate.
May = Callable[[Certificate, Request], bool]


class RequestServer:
    """One request a connection; who may not ask is hung up on, without an answer.

    What is to be executed has the connection for as long as it takes.
    """

    def __init__(
        self,
        admit: Admit,
        answer: Callable[[str, Request], Awaitable[Answer]],
        counts: Counter[str],
        *,
        within_s: float = CONVERSE_WITHIN_S,
        execute: Execute | None = None,
        may: May = lambda _certificate, _request: True,
    ) -> None:
        self._admit = admit
        self._answer = answer
        self._counts = counts
        self._within_s = within_s
        self._execute = execute
        self._may = may
        self._at_once: Counter[str] = Counter()

    async def converse(self, talk: Talk) -> None:
        """Take one request and answer it, or hang up."""
        caller = self._admit(talk.writer.get_extra_info("peercert"))
        if caller is None:
            self._counts["not admitted"] += 1
            _log.warning(
                "a request from %s is not answered: its certificate is another's", talk.host
            )
            return
        if self._at_once[caller] >= OF_ONE_CALLER_MAX:
            self._counts["too many of one caller"] += 1
            return
        self._at_once[caller] += 1
        try:
            async with asyncio.timeout(self._within_s):
                request = await self._heard(talk)
                if request is not None and not isinstance(request, ExecAsked):
                    await self._told(talk, caller, request)
            if isinstance(request, ExecAsked):
                await self._executed(talk, caller, request)
        finally:
            self._at_once[caller] -= 1
            if not self._at_once[caller]:
                del self._at_once[caller]

    async def _heard(self, talk: Talk) -> Request | None:
        request = await hear_request(talk.reader)
        if request is None:
            self._counts["no request"] += 1
            return None
        talk.heard()
        talk.let_in()
        self._counts[type(request).__name__] += 1
        return request

    async def _executed(self, talk: Talk, caller: str, request: ExecAsked) -> None:
        """It ends by itself, or with the connection."""
        if self._execute is not None:
            await self._execute(request, talk)
        async with asyncio.timeout(self._within_s):
            if self._execute is None:
                await self._told(talk, caller, request)
            else:
                talk.writer.close()
                await talk.writer.wait_closed()

    async def _told(self, talk: Talk, caller: str, request: Request) -> None:
        if self._may(talk.writer.get_extra_info("peercert"), request):
            answer = await self._answer(caller, request)
        else:
            self._counts["certificate ended"] += 1
            answer = Unable("your certificate has ended: it can only be renewed")
        talk.writer.write(_packed(answer))
        talk.writer.close()
        await talk.writer.wait_closed()


def _packed(answer: Answer) -> bytes:
    try:
        return pack(answer)
    except ValueError as error:
        return pack(Unable(f"the answer is too long: {error}"))
