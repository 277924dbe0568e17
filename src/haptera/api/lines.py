"""A list as newline-delimited JSON: one item a line, each made only when it is about to be sent."""

import asyncio
from collections.abc import Iterable
from itertools import islice
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from haptera.api.body import as_json

MEDIA_TYPE: Final = "application/x-ndjson"
# So many are in memory at once, however long the list is.
LINES_AT_ONCE: Final = 200
TAKEN_WITHIN_S: Final = 30.0
_BODY: Final = {"type": "http.response.body"}


def wants_lines(request: Request) -> bool:
    """Whether a request accepts lines by name; whoever takes anything is sent one document."""
    accepted = request.headers.get("accept", "").split(",")
    return MEDIA_TYPE in {one.partition(";")[0].strip().lower() for one in accepted}


def listing(
    request: Request, whole: object, items: Iterable[object], headers: dict[str, str] | None = None
) -> Response:
    """A list that is at hand, as one document or as lines, whichever was asked for."""
    return Lines(items, headers) if wants_lines(request) else as_json(whole, headers=headers)


class Lines(Response):
    """Sends what it is given, line by line; who takes nothing for a while is given up.

    A list that broke off has no end: the last chunk of the answer is missing then.
    """

    def __init__(
        self,
        items: Iterable[object],
        headers: dict[str, str] | None = None,
        *,
        within_s: float = TAKEN_WITHIN_S,
    ) -> None:
        super().__init__(media_type=MEDIA_TYPE, headers=headers)
        del self.headers["content-length"]
        self._items = iter(items)
        self._within_s = within_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        try:
            await self._send_all(send)
        except TimeoutError:
            return  # Without an end: the server hangs up.
        await send({**_BODY, "body": b"", "more_body": False})

    async def _send_all(self, send: Send) -> None:
        encoder = msgspec.json.Encoder()
        while chunk := list(islice(self._items, LINES_AT_ONCE)):
            async with asyncio.timeout(self._within_s):
                await send({**_BODY, "body": encoder.encode_lines(chunk), "more_body": True})
            await asyncio.sleep(0)  # A long list must not hold up the cluster.
