"""Asking the other side over TLS: a connection for each request, so many at once, so long each."""

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Final

from haptera.runtime.network.one_frame import hear_each, pack
from haptera.runtime.network.peer_messages import (
    Answer,
    ExecAnswer,
    ExecAsked,
    Request,
    Unable,
    hear_answer,
)
from haptera.runtime.network.tls import Certificate, hang_up

ASKED_AT_ONCE_MAX: Final = 32
ASK_WITHIN_S: Final = 5.0
# A person waits for a command.
CONNECTED_WITHIN_S: Final = 15.0
# A command's keeper tells every 5 s that it runs.
SILENCE_S: Final = 45.0

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Party:
    """Whom to ask: where it is, what people call it, and whether a certificate is its own."""

    name: str
    address: Address
    owns: Callable[[Certificate], bool]


class Asker:
    """Asks; whatever goes wrong comes back as `Unable`, in words for people.

    `context` is read anew for each connection, for certificates are renewed.
    """

    def __init__(
        self, context: Callable[[], ssl.SSLContext], local_host: str | None = None
    ) -> None:
        self._context = context
        self._local = None if local_host is None else (local_host, 0)
        self._slots = asyncio.Semaphore(ASKED_AT_ONCE_MAX)

    async def ask(self, party: Party, request: Request, within_s: float = ASK_WITHIN_S) -> Answer:
        """One request and its answer; waiting for a free slot counts, too."""
        try:
            async with asyncio.timeout(within_s), self._slots:
                return await self._converse(party, request)
        except TimeoutError:
            return Unable(f"{party.name} did not answer within {within_s:g} s")
        except OSError as error:
            return Unable(f"{party.name} cannot be asked: {_words(error)}")

    async def execute(self, party: Party, request: ExecAsked) -> AsyncGenerator[ExecAnswer, None]:
        """Have a command run; what comes of it, last its exit status, or `Unable`.

        Who stops listening (`aclose`) ends the command.
        """
        try:
            async with asyncio.timeout(CONNECTED_WITHIN_S):
                reader, writer = await self._connect(party)
        except TimeoutError:
            yield Unable(f"{party.name} did not answer within {CONNECTED_WITHIN_S:g} s")
            return
        except OSError as error:
            yield Unable(f"{party.name} cannot be asked: {_words(error)}")
            return
        try:
            if not party.owns(writer.get_extra_info("peercert")):
                yield Unable(f"the server that answered is not {party.name}")
                return
            writer.write(pack(request))
            async for told in _executed(party.name, reader):
                yield told
        finally:
            hang_up(writer.transport)

    async def _connect(self, party: Party) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            *party.address, ssl=self._context(), local_addr=self._local
        )

    async def _converse(self, party: Party, request: Request) -> Answer:
        reader, writer = await self._connect(party)
        try:
            if not party.owns(writer.get_extra_info("peercert")):
                return Unable(f"the server that answered is not {party.name}")
            writer.write(pack(request))
            answer = await hear_answer(reader)
        finally:
            hang_up(writer.transport)
        return (
            Unable(f"{party.name} closed the connection without an answer")
            if answer is None
            else answer
        )


async def _executed(name: str, reader: asyncio.StreamReader) -> AsyncGenerator[ExecAnswer, None]:
    """The news of a command, up to its end; a broken connection is one of them."""
    answers = hear_each(reader, ExecAnswer)
    try:
        while True:
            async with asyncio.timeout(SILENCE_S):
                told: ExecAnswer | None = await anext(answers, None)
            if told is None:
                break
            yield told
            if isinstance(told, Unable) or told.status is not None:
                return
    except TimeoutError:
        yield Unable(f"{name} has been silent for {SILENCE_S:g} s")
        return
    except OSError as error:
        yield Unable(f"{name} is gone, and the command with it: {_words(error)}")
        return
    yield Unable(f"{name} closed the connection before the command ended")


def _words(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return (error.reason or "TLS failed").lower().replace("_", " ")
    return os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
