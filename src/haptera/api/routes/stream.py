"""The route of server-sent events: all entities once, then each as it changes.

A stream begins with `snapshot`, unless Last-Event-ID names a place that is still known; all that
follows is `change`, but for a client that falls too far behind: it is sent a `snapshot` anew.
Long lists come in slices; of those of a snapshot only the last has an id.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from haptera.api.backend import Backend
from haptera.api.requests.endpoint import Caller, Handler, narrowed
from haptera.core.views.bus import Batch, Listener, Shown, news_of
from haptera.kinds import KINDS
from haptera.kinds.meaning import check_selector
from haptera.model.declared.desired_check import nearest
from haptera.model.entity import EntityId
from haptera.model.errors import Code, HapteraError, UnknownNameError
from haptera.rest import endpoints
from haptera.rest.schemas import Event
from haptera.selectors.subscription import Cursor, Subscription, parse_cursor, parse_wanted

STREAMS_MAX: Final = 256
# Of those, what one caller may have: so no token takes the streams of all others.
STREAMS_EACH_MAX: Final = 64
ENTITIES_PER_EVENT: Final = 200
# Changes that come closer together than this go out together.
EVERY_S: Final = 0.05
KEEP_ALIVE_S: Final = 15.0
SENT_WITHIN_S: Final = 30.0


@dataclass(slots=True)
class StreamRoute:
    backend: Backend
    cluster: str
    streams: set["EventStream"] = field(default_factory=set)

    def served(self) -> Iterator[Handler]:
        yield Handler(endpoints.EVENTS, self.events)

    async def events(self, request: Request, caller: Caller) -> Response:
        """Server-sent events: all entities once, then each as it changes."""
        self._check_room(caller)
        since = self._resumed(request.headers.get("last-event-id"))
        wanted = _wanted(request)
        wanted = replace(wanted, selector=narrowed(wanted.selector, caller))
        # What it was shown before the break is not known here.
        return EventStream(self, caller, wanted, since if wanted.selector.by_name else None)

    def _check_room(self, caller: Caller) -> None:
        own = sum(1 for one in self.streams if one.whose == caller.name)
        if own >= STREAMS_EACH_MAX or len(self.streams) >= STREAMS_MAX:
            whose = f" of {caller.name}'s" if own >= STREAMS_EACH_MAX else ""
            raise HapteraError(
                f"{own if whose else STREAMS_MAX} streams{whose} are open already",
                do="close one, or try again later",
                code=Code.TOO_MANY,
            )

    def close(self) -> None:
        """Let all streams end: the server is about to."""
        for stream in self.streams:
            stream.close()

    def text(self, batch: Batch, shown: Shown | None) -> str | None:
        """One event; None where there is nothing new."""
        views, types, gone, left = news_of(batch, self.backend.queries.entity, shown)
        snapshot_ends = shown is None and batch.cursor is not None
        if not (batch.fresh or snapshot_ends or views or gone or left):
            return None
        data = msgspec.json.encode(Event(self.cluster, views, gone, types, left)).decode()
        place = "" if batch.cursor is None else f"id: {batch.cursor}\n"
        return f"{place}event: {'snapshot' if batch.fresh else 'change'}\ndata: {data}\n\n"

    def _resumed(self, text: str | None) -> Cursor | None:
        if not text:
            return None
        cursor = parse_cursor(text)
        if cursor is None:
            raise HapteraError(
                f"{text!r} is not an event id",
                where="the header Last-Event-ID",
                do="send the id of the last event you got, or nothing",
            )
        if not self.backend.bus.has(cursor):
            raise HapteraError(
                f"what changed after {cursor} is no longer known",
                where="the header Last-Event-ID",
                do="start again without it: a snapshot comes first",
                code=Code.EVENTS_GONE,
            )
        return cursor


class EventStream(Response):
    """Sends events until the client goes, is let in no more, or the server ends."""

    def __init__(
        self, route: StreamRoute, caller: Caller, wanted: Subscription, since: Cursor | None
    ) -> None:
        super().__init__(media_type="text/event-stream")
        del self.headers["content-length"]
        self._route = route
        self._caller = caller
        self.whose = caller.name
        self._news = asyncio.Event()
        self._wanted = wanted
        self._since = since
        self._closed = False
        self._shown = None if wanted.selector.by_name else Shown(self._means)

    def close(self) -> None:
        self._closed = True
        self._news.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        listener = self._route.backend.bus.listen(self._wanted, self._news.set, self._since)
        self._route.streams.add(self)
        try:
            await while_heard(self._send_all(listener, send), receive)
        finally:
            listener.close()
            self._route.streams.discard(self)

    async def _send_all(self, listener: Listener, send: Send) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": HTTPStatus.OK.value,
                "headers": self.raw_headers,
            }
        )
        while not self._closed and self._caller.holds():
            self._news.clear()
            while (batch := listener.drain(ENTITIES_PER_EVENT)) is not None:
                if (text := self._route.text(batch, self._shown)) is not None:
                    await _send(send, text)
                await asyncio.sleep(0)
            await asyncio.sleep(EVERY_S)
            if not await self._has_news():
                await _send(send, ": still here\n\n")
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _means(self, entity: EntityId) -> bool:
        return self._route.backend.queries.means(self._wanted.selector, entity)

    async def _has_news(self) -> bool:
        try:
            async with asyncio.timeout(KEEP_ALIVE_S):
                return await self._news.wait()
        except TimeoutError:
            return False


def _wanted(request: Request) -> Subscription:
    """What the query asks for; lists have commas between their words."""
    kinds = _words(request, "kinds")
    if kinds is not None and (unknown := sorted(set(kinds) - KINDS.keys())):
        what = f"there is no kind {unknown[0]!r}"
        raise UnknownNameError(what, where="the query", do=nearest(unknown[0], KINDS))
    wanted = parse_wanted(_words(request, "types"), kinds, request.query_params.get("select"))
    check_selector(wanted.selector)
    return wanted


def _words(request: Request, name: str) -> list[str] | None:
    text: str | None = request.query_params.get(name)
    return None if text is None else text.split(",")


async def _send(send: Send, text: str) -> None:
    """Send one event; a client that does not take it in time is given up."""
    async with asyncio.timeout(SENT_WITHIN_S):
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def while_heard(sends: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Send to the end, or until the client hangs up."""
    async with asyncio.TaskGroup() as tasks:
        sending = tasks.create_task(sends)
        leaving = tasks.create_task(_cancel_when_gone(receive, sending))
        sending.add_done_callback(lambda _: leaving.cancel())


async def _cancel_when_gone(receive: Receive, sending: asyncio.Task[None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    sending.cancel()
