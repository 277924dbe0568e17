"""A list whose items are made only when they are about to be sent: as lines, or one document."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from haptera.api.requests.body import as_json
from haptera.rest.endpoint import LINES as LINES_TYPE

# So many are in memory at once, however long the list is.
LINES_AT_ONCE: Final = 200
TAKEN_WITHIN_S: Final = 30.0
_BODY: Final = {"type": "http.response.body"}
_EMPTY: Final = b"[]}"


@dataclass(frozen=True, slots=True)
class ListForm:
    """What a list looks like: how some items are written, and what is around and between them."""

    media_type: str
    written: Callable[[Sequence[object]], bytes]
    head: bytes = b""
    between: bytes = b""
    tail: bytes = b""


LINES: Final = ListForm(LINES_TYPE, msgspec.json.Encoder().encode_lines)


def document(whole: object) -> ListForm:
    """One JSON document, which is whole but for the list that is its last member."""
    text = msgspec.json.encode(whole)
    assert text.endswith(_EMPTY), "the list comes last, and is empty"
    head, tail = text.removesuffix(_EMPTY) + b"[", b"]}"
    return ListForm("application/json", _items, head, b",", tail)


def wants_lines(request: Request) -> bool:
    """Whether a request accepts lines by name; one that takes anything gets one document."""
    accepted = request.headers.get("accept", "").split(",")
    return LINES_TYPE in {one.partition(";")[0].strip().lower() for one in accepted}


def listing(
    request: Request, whole: object, items: Iterable[object], headers: dict[str, str] | None = None
) -> Response:
    """A list that is at hand, as one document or as lines, whichever was asked for."""
    return Lines(items, headers) if wants_lines(request) else as_json(whole, headers=headers)


class Lines(Response):
    """Sends what it is given, some at a time; who takes nothing for a while is given up.

    A list that broke off has no end: the last chunk of the answer is missing then.
    """

    def __init__(
        self,
        items: Iterable[object],
        headers: dict[str, str] | None = None,
        *,
        form: ListForm = LINES,
        within_s: float = TAKEN_WITHIN_S,
    ) -> None:
        super().__init__(media_type=form.media_type, headers=headers)
        self._form = form
        del self.headers["content-length"]
        self._items = iter(items)
        self._within_s = within_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        try:
            left = await self._send_all(send)
        except TimeoutError:
            return  # Without an end: the server hangs up.
        await send({**_BODY, "body": left + self._form.tail, "more_body": False})

    async def _send_all(self, send: Send) -> bytes:
        """Send all items; what is still to come before the end."""
        form, before = self._form, self._form.head
        while chunk := list(islice(self._items, LINES_AT_ONCE)):
            async with asyncio.timeout(self._within_s):
                await send({**_BODY, "body": before + form.written(chunk), "more_body": True})
            before = form.between
            await asyncio.sleep(0)  # A long list must not hold up the cluster.
        return before if before is form.head else b""


def _items(chunk: Sequence[object]) -> bytes:
    """As in a list, without its brackets."""
    return msgspec.json.encode(chunk)[1:-1]
