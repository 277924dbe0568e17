"""The route that runs a command on a node, or in a system there, and tells what it writes."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, assert_never

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from haptera.api.backend import Backend
from haptera.api.requests.body import read_body
from haptera.api.requests.endpoint import Caller, Handler, author
from haptera.api.requests.lines import LINES
from haptera.api.routes.stream import while_heard
from haptera.api.writes.patching import missing
from haptera.model.entity import EntityId, parse_entity
from haptera.model.errors import Code, HapteraError, LimitError
from haptera.rest import endpoints
from haptera.rest.endpoint import LINES as LINES_TYPE
from haptera.rest.exec import STDIN_BYTES_MAX, WORDS_BYTES_MAX, ExecBody, ExecView
from haptera.runtime.network.peer_messages import (
    ExecAnswer,
    ExecAsked,
    ExecTold,
    Unable,
)
from haptera.selectors.selector import Selector

# Commands at once over one parent.
EXECUTED_AT_ONCE_MAX: Final = 64
# As base64, and the rest of it.
BODY_BYTES_MAX: Final = 2 * STDIN_BYTES_MAX
# Where there may be a command: on a node, and in a system.
KINDS: Final = ("node", "system")


@dataclass(slots=True)
class ExecutionRoute:
    backend: Backend
    running: set["ExecutionStream"] = field(default_factory=set)

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.EXECUTE, self.execute)

    async def execute(self, request: Request, caller: Caller) -> Response:
        """Run a command on a node, or in a system: what it writes as it comes, then its status.

        There is no shell in between. The last line has `status`. Hanging up ends the command.
        Who asked for it is put in the audit with its words, before it begins; what it reads and
        writes never is.
        """
        entity = parse_entity(request.path_params["entity"])
        body = await read_body(request, ExecBody, BODY_BYTES_MAX)
        self._check(entity, body, caller.within)
        by = author(request, caller)
        asked = ExecAsked(entity, tuple(body.words), body.within_s, body.stdin)
        words = msgspec.json.encode(body.words).decode()
        reason = "" if by.why is None else f": {by.why}"
        told = self.backend.orders.execute(asked, by.who, f"exec {entity} {words}{reason}")
        # Whatever is refused is so at once, and then there is a status for it.
        first = await anext(told)
        if isinstance(first, Unable):
            await told.aclose()
            do = f"see how it is: haptera why {entity}"
            raise HapteraError(first.text, where=str(entity), do=do, code=Code.CONFLICT)
        return ExecutionStream(self, caller, first, told, body.within_s)

    def _check(self, entity: EntityId, body: ExecBody, within: Selector | None) -> None:
        if entity.kind not in KINDS or entity.node is None:
            raise HapteraError(
                f"nothing can be run in {entity}", do="name a node, or a system: system:NAME@NODE"
            )
        if self.backend.queries.entity(entity) is None:
            raise missing(self.backend.queries, entity, within)
        size_bytes = sum(len(word.encode()) + 1 for word in body.words)
        if size_bytes > WORDS_BYTES_MAX:
            raise LimitError(
                f"the command has {size_bytes} bytes, more than {WORDS_BYTES_MAX}",
                where="words",
                do="send what is long as its input",
            )
        if len(self.running) >= EXECUTED_AT_ONCE_MAX:
            raise HapteraError(
                f"{len(self.running)} commands run over this parent already",
                do="try again once one has ended",
                code=Code.TOO_MANY,
            )


class ExecutionStream(Response):
    """Sends what comes of a command until its end; it ends with the client, or its right."""

    def __init__(
        self,
        route: ExecutionRoute,
        caller: Caller,
        first: ExecAnswer,
        told: AsyncGenerator[ExecAnswer, None],
        within_s: float,
    ) -> None:
        """Who takes none of it for `within_s`, the command's own limit, is given up."""
        super().__init__(media_type=LINES_TYPE)
        del self.headers["content-length"]
        self._route = route
        self._caller = caller
        self._first = first
        self._told = told
        self._within_s = within_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._route.running.add(self)
        try:
            await while_heard(self._send_all(send), receive)
        finally:
            self._route.running.discard(self)

    async def _send_all(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": HTTPStatus.OK.value}
        async with aclosing(self._told):
            await send({**start, "headers": self.raw_headers})
            await self._send(send, self._first)
            async for told in self._told:
                if not self._caller.holds():
                    told = Unable("your token is no longer valid: the command was ended")
                await self._send(send, told)
                if isinstance(told, Unable):
                    break
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send, told: ExecAnswer) -> None:
        line = LINES.written([_view(told)])
        async with asyncio.timeout(self._within_s):
            await send({"type": "http.response.body", "body": line, "more_body": True})


def _view(told: ExecAnswer) -> ExecView:
    match told:
        case ExecTold(stdout, stderr, status, why):
            return ExecView(stdout, stderr, status, why)
        case Unable(text):
            return ExecView(lost=text)
        case _:
            assert_never(told)
