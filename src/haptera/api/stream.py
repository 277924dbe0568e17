"""The route of server-sent events: all entities once, then each as it changes.

A stream begins with `snapshot`, unless Last-Event-ID names a place that the feed still has; all
that follows is `change`. Long lists come in slices, of which only the last has an id.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from haptera.api.backend import Backend
from haptera.api.endpoint import Caller, Endpoint
from haptera.api.feed import Feed, Mark, parse_mark
from haptera.api.problems import ProblemError
from haptera.api.shapes import Event
from haptera.model.views import EntityView
from haptera.runtime import tokens

STREAMS_MAX: Final = 64
ENTITIES_PER_EVENT: Final = 200
# Changes that come closer together than this go out together.
EVERY_S: Final = 0.05
KEEP_ALIVE_S: Final = 15.0
SENT_WITHIN_S: Final = 30.0


@dataclass(slots=True)
class StreamRoute:
    backend: Backend
    feed: Feed
    cluster: str
    streams: int = 0

    def endpoints(self) -> Iterator[Endpoint]:
        yield Endpoint("GET", "/v1/events", tokens.Scope.READ, self.events)

    async def events(self, request: Request, _caller: Caller) -> Response:
        if self.streams >= STREAMS_MAX:
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"{STREAMS_MAX} streams are open already",
                do="close one, or try again later",
            )
        return EventStream(self, self._resumed(request.headers.get("last-event-id")))

    def texts_since(self, mark: Mark | None) -> tuple[list[str], Mark]:
        """The events that bring a client from there to now, and where now is."""
        now = self.feed.latest
        if mark is None:
            return list(self._texts("snapshot", self.backend.entities(None, None), [], now)), now
        changed = self.feed.since(mark)
        found = [(entity, self.backend.entity(entity)) for entity in changed]
        views = [view for _, view in found if view is not None]
        gone = [str(entity) for entity, view in found if view is None]
        return list(self._texts("change", views, gone, now)), now

    def _texts(
        self, name: str, views: list[EntityView], gone: list[str], mark: Mark
    ) -> Iterator[str]:
        for begin in range(0, max(len(views), 1), ENTITIES_PER_EVENT):
            end = begin + ENTITIES_PER_EVENT
            last = end >= len(views)
            event = Event(self.cluster, views[begin:end], gone if last else [])
            data = msgspec.json.encode(event).decode()
            place = f"id: {mark}\n" if last else ""
            yield f"{place}event: {name}\ndata: {data}\n\n"
            name = "change"

    def _resumed(self, text: str | None) -> Mark | None:
        if not text:
            return None
        mark = parse_mark(text)
        if mark is None:
            raise ProblemError(
                HTTPStatus.BAD_REQUEST,
                f"{text!r} is no place in a stream",
                where="the header Last-Event-ID",
                do="send the id of the last event you got, or nothing",
            )
        if not self.feed.has(mark):
            raise ProblemError(
                HTTPStatus.GONE,
                f"what changed after {mark} is no longer known",
                where="the header Last-Event-ID",
                do="begin anew without it: a snapshot comes first",
            )
        return mark


class EventStream(Response):
    """Sends events until the client goes, falls behind what the feed keeps, or the server ends."""

    def __init__(self, route: StreamRoute, mark: Mark | None) -> None:
        super().__init__(media_type="text/event-stream")
        del self.headers["content-length"]
        self._route = route
        self._mark = mark

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._route.streams += 1
        try:
            async with asyncio.TaskGroup() as tasks:
                sending = tasks.create_task(self._send_all(send))
                leaving = tasks.create_task(_cancel_when_gone(receive, sending))
                sending.add_done_callback(lambda _: leaving.cancel())
        finally:
            self._route.streams -= 1

    async def _send_all(self, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": HTTPStatus.OK.value,
                "headers": self.raw_headers,
            }
        )
        feed = self._route.feed
        while not feed.closed and (self._mark is None or feed.has(self._mark)):
            if self._mark == feed.latest:
                if not await feed.wait(KEEP_ALIVE_S):
                    await _send(send, ": still here\n\n")
                continue
            texts, self._mark = self._route.texts_since(self._mark)
            for text in texts:
                await _send(send, text)
            await asyncio.sleep(EVERY_S)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send(send: Send, text: str) -> None:
    """Send one event; a client that does not take it in time is given up."""
    async with asyncio.timeout(SENT_WITHIN_S):
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def _cancel_when_gone(receive: Receive, sending: asyncio.Task[None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    sending.cancel()
