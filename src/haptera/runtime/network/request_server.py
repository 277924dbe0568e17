"""Answering requests over TLS, of whoever the certificate says may ask."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from haptera.runtime.network.peer_messages import Answer, Request, Unable, hear_request, pack
from haptera.runtime.network.tls import Certificate

# From the end of the handshake to the last byte of the answer.
CONVERSE_WITHIN_S: Final = 10.0

_log = logging.getLogger(__name__)

# Who asks, by name, as a verified certificate says; None: nobody who may.
Admit = Callable[[Certificate], str | None]


class RequestServer:
    """One request a connection; who may not ask is hung up on, without an answer."""

    def __init__(
        self,
        admit: Admit,
        answer: Callable[[str, Request], Awaitable[Answer]],
        counts: Counter[str],
        *,
        within_s: float = CONVERSE_WITHIN_S,
    ) -> None:
        self._admit = admit
        self._answer = answer
        self._counts = counts
        self._within_s = within_s

    async def converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str
    ) -> None:
        """Take one request and answer it, or hang up."""
        caller = self._admit(writer.get_extra_info("peercert"))
        if caller is None:
            self._counts["not admitted"] += 1
            _log.warning("a request from %s is not answered: its certificate is another's", host)
            return
        async with asyncio.timeout(self._within_s):
            request = await hear_request(reader)
            if request is None:
                self._counts["no request"] += 1
                return
            self._counts[type(request).__name__] += 1
            writer.write(_packed(await self._answer(caller, request)))
            writer.close()
            await writer.wait_closed()


def _packed(answer: Answer) -> bytes:
    try:
        return pack(answer)
    except ValueError as error:
        return pack(Unable(f"the answer is too long: {error}"))
