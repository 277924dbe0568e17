"""Idempotency keys: what was asked with a key is done once, and answered alike each time.

As draft-ietf-httpapi-idempotency-key-header has it. A key is durable before its request is begun,
so that whatever was written is known to have been asked for, also by a later process.
"""

import hashlib
import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from haptera.api.backend import Orders
from haptera.api.requests.body import read_bytes
from haptera.api.requests.endpoint import Caller, Handler, dry_run
from haptera.api.requests.problems import status_of
from haptera.api.routes.sites import SITE_BODY_BYTES_MAX
from haptera.model.errors import Code, HapteraError
from haptera.rest.endpoint import KEY_HEADER
from haptera.runtime.identity.tokens import Scope
from haptera.runtime.store.keyed import Held, KeptAnswer, RequestKey

KEY_CHARS_MAX: Final = 128
# A string of structured fields (RFC 8941), or its characters alone.
_KEY: Final = re.compile(rf'"?([A-Za-z0-9._~:/+=@-]{{1,{KEY_CHARS_MAX}}})"?')
_REPLAYED: Final = "Idempotency-Replayed"

_log = logging.getLogger(__name__)

Answer = Callable[[Request, Caller], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Idempotency:
    """`under_way` are the keys whose requests this process is working on."""

    orders: Orders
    under_way: set[RequestKey] = field(default_factory=set)

    def heeded(self, served: Handler) -> Handler:
        """The endpoint, which heeds keys now, or refuses them where one would trust in vain."""
        answer, endpoint = served.answer, served.endpoint
        heeds = endpoint.keyed
        if not heeds and (endpoint.method == "GET" or endpoint.scope is Scope.READ):
            return served

        @wraps(answer)
        async def keyed(request: Request, caller: Caller) -> Response:
            text = request.headers.get(KEY_HEADER)
            if text is None or (endpoint.dry_scope is not None and dry_run(request)):
                return await answer(request, caller)
            if not heeds:
                raise _no_key("this request takes no idempotency key", "send it without a key")
            return await self._answer(request, caller, _key_of(text, caller), answer)

        return replace(served, answer=keyed)

    async def _answer(
        self, request: Request, caller: Caller, key: RequestKey, answer: Answer
    ) -> Response:
        if key in self.under_way:
            raise _conflict("the request with this key is under way", "wait, then send it again")
        self.under_way.add(key)
        try:
            body = await read_bytes(request, SITE_BODY_BYTES_MAX)
            digest = _digest(request, caller, body)
            held = await self.orders.begin_keyed(key, digest)
            if held is not None:
                return _again(held, digest)
            return await self._first(_with_body(request, body), caller, key, answer)
        finally:
            self.under_way.discard(key)

    async def _first(
        self, request: Request, caller: Caller, key: RequestKey, answer: Answer
    ) -> Response:
        try:
            response = await answer(request, caller)
        except HapteraError as error:
            await self._end(key, KeptAnswer(status_of(error), {}, None))
            raise
        await self._end(key, _kept(response))
        return response

    async def _end(self, key: RequestKey, answer: KeptAnswer) -> None:
        """Note what came of a request: nothing, where it was refused.

        What came of it stays unknown where something failed, or where this cannot be written.
        """
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return
        try:
            refused = answer.status >= HTTPStatus.BAD_REQUEST
            await self.orders.end_keyed(key, None if refused else answer)
        except HapteraError as error:
            _log.warning("the answer to a request with an idempotency key is not kept: %s", error)


def _key_of(text: str, caller: Caller) -> RequestKey:
    found = _KEY.fullmatch(text)
    if found is None:
        advice = f"send up to {KEY_CHARS_MAX} letters and digits, a UUID say"
        raise _no_key(f"{text[:KEY_CHARS_MAX]!r} is not a key", advice)
    return RequestKey(f"user:{caller.name}", found[1])


def _digest(request: Request, caller: Caller, body: bytes) -> bytes:
    """The parts of a request that make it another: also what its caller may see."""
    url, within = request.url, caller.within
    matched = request.headers.get("if-match", "")
    parts = (request.method, url.path, url.query, matched, "" if within is None else within.text)
    digest = hashlib.sha256()
    for part in (*(text.encode() for text in parts), body):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.digest()


def _again(held: Held, digest: bytes) -> Response:
    """The answer that was given before.

    Raises:
        HapteraError: it was to another request, or is not known any more.
    """
    if held.sha256 != digest:
        raise HapteraError(
            "this key was sent with another request",
            where=f"the header {KEY_HEADER}",
            do="make a new key for each request",
            code=Code.KEY_REUSED,
        )
    if held.answer is None:
        raise _conflict(
            "this request was started before, and its outcome is not known",
            "check the state; if it is not done, send it with a new key",
        )
    if held.answer.body is None:
        raise _conflict("this request succeeded; its answer was too long to be kept", "go on")
    return Response(
        held.answer.body, held.answer.status, {**held.answer.headers, _REPLAYED: "true"}
    )


def _no_key(what: str, do: str) -> HapteraError:
    return HapteraError(what, where=f"the header {KEY_HEADER}", do=do)


def _conflict(what: str, do: str) -> HapteraError:
    return HapteraError(what, where=f"the header {KEY_HEADER}", do=do, code=Code.KEY_UNSETTLED)


def _kept(response: Response) -> KeptAnswer:
    headers = {name: text for name, text in response.headers.items() if name != "content-length"}
    return KeptAnswer(response.status_code, headers, bytes(response.body))


def _with_body(request: Request, body: bytes) -> Request:
    """The same request, whose body is read already."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return Request(request.scope, receive)
