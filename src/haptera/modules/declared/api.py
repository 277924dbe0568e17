"""An API as a declared module asks it: as somebody, not too often, and again when it says so."""

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import msgspec

from haptera.modules.declared.exchange import (
    LIST_BYTES_MAX,
    ApiExchange,
    ApiOrigin,
    ApiRequest,
    PlatformAnswer,
    PlatformError,
)
from haptera.modules.declared.terms import HttpTerms, ListTerms, TaskTerms
from haptera.modules.declared.texts import Path, filled_path, found_at, path_of, text_of, words
from haptera.modules.effects import Effect, NotYetError, failure_of
from haptera.modules.statuses import effect_of
from haptera.sdk import HapteraError, Refused, Secret

PAGES_MAX: Final = 1_000
ITEMS_MAX: Final = 100_000
# After which a service that says 429 or 503 is asked again, if it names no time; and for how long
# one call waits for that: what is later is another call's, so that its caller hears why.
AGAIN_S: Final = 1.0
AGAIN_S_MAX: Final = 60.0
WAIT_S_MAX: Final = 3.0
_BUSY: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
_SECRET_CHARS_MIN: Final = 4

ApiTransport = Callable[[ApiRequest], Awaitable[PlatformAnswer]]


@dataclass(frozen=True, slots=True)
class DeclaredSettings:
    """The settings that a site gives a declared module: its user and token."""

    token: Secret | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class ListedItems:
    """The items of a list by name, and the time at which its reading began."""

    at: float
    items: Mapping[str, Any]


class Api:
    """All that a module's process knows of its API; `transport` sends, in tests something else."""

    def __init__(
        self, terms: HttpTerms, settings: DeclaredSettings, transport: ApiTransport | None = None
    ) -> None:
        self._terms = terms
        self._settings = settings
        self._origin = ApiOrigin(terms.url, terms.ca_file, terms.certificate_file)
        self._threads = ThreadPoolExecutor(terms.at_once)
        self._transport = self._sent if transport is None else transport
        self._free = asyncio.Semaphore(terms.at_once)
        # The earliest time of the next request, by the loop's clock.
        self._next_at = 0.0
        self._lists: dict[str, ListedItems] = {}
        self._reading: dict[str, asyncio.Lock] = {}
        self._error = None if terms.error is None else path_of(terms.error)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def read(
        self, path: str, *, bytes_max: int | None = None
    ) -> tuple[Any, PlatformAnswer] | None:
        """The data at this path, with the answer; None where there is nothing.

        Raises:
            PlatformError: it does not say.
        """
        answer = await self._asked("GET", self._origin.base + path, bytes_max=bytes_max)
        if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            return None
        if answer.status != HTTPStatus.OK:
            raise PlatformError(self._said(answer))
        return _data(answer), answer

    async def change(
        self, method: str, path: str, body: Any, *, same_as: str | None = None
    ) -> PlatformAnswer:
        """Have something changed, and say what was answered; `same_as` is a tag of its state.

        Raises:
            Refused: it says that it does not do it.
            PlatformError: nobody knows what it has done.
        """
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if same_as is None else {"If-Match": same_as}
        self.forget()
        try:
            answer = await self._asked(method, self._origin.base + path, content, headers)
        finally:
            self.forget()
        if 200 <= answer.status < 300:
            return answer
        effect = effect_of(answer.status) if answer.status >= 400 else Effect.UNKNOWN
        raise failure_of(effect, self._said(answer))

    async def finished(
        self, answer: PlatformAnswer, task: TaskTerms, path: str, say: Callable[[str], object]
    ) -> None:
        """Wait until what was accepted is done.

        Raises:
            PlatformError: it has failed, or cannot be followed.
        """
        try:
            at = self._task_path(answer, task, self._origin.base + path)
        except Refused as refusal:
            # Of the path alone: nobody refused the change.
            raise PlatformError(f"its task cannot be followed: {refusal}") from None
        await self._followed(at, task, say)

    async def awaited(self, path: str, task: TaskTerms, say: Callable[[str], object]) -> None:
        """Wait until what others began is done; raises as `finished`."""
        await self._followed(self._origin.base + path, task, say)

    async def _followed(self, at: str, task: TaskTerms, say: Callable[[str], object]) -> None:
        state, error = path_of(task.state), None if task.error is None else path_of(task.error)
        while True:
            # What cannot be read goes on: it is asked again for as long as the call may take.
            try:
                found = await self._asked("GET", at)
            except NotYetError as busy:
                say(str(busy))
                await asyncio.sleep(max(task.every_s, busy.again_s))
                continue
            if found.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                say(self._said(found))
                await asyncio.sleep(task.every_s)
                continue
            if found.status != HTTPStatus.OK:
                raise PlatformError(f"its task: {self._said(found)}")
            data = _data(found)
            is_now = text_of(found_at(data, state)) or "nothing"
            if is_now in task.done:
                self.forget()
                return
            if is_now in task.failed:
                why = None if error is None else text_of(found_at(data, error))
                raise PlatformError(self.words(f"its task is {is_now}: {why or 'it says no more'}"))
            say(self.words(is_now))
            await asyncio.sleep(task.every_s)

    async def listed(self, name: str, terms: ListTerms, since: float) -> ListedItems:
        """The items of a list, read after `since` less the time for which the list is fresh.

        Raises:
            PlatformError: it does not say.
        """
        async with self._reading.setdefault(name, asyncio.Lock()):
            held = self._lists.get(name)
            if held is None or held.at < since - terms.fresh_s:
                began = asyncio.get_running_loop().time()
                held = ListedItems(began, await self._all(terms))
                self._lists[name] = held
            return held

    def forget(self) -> None:
        """Something was changed: what was listed before is old."""
        self._lists.clear()

    def words(self, text: str) -> str:
        """A message of the API in one line, without our own token."""
        token = self._settings.token
        if token is not None and len(token) >= _SECRET_CHARS_MIN:
            sent = b64encode(f"{self._settings.user or ''}:{token}".encode()).decode()
            text = text.replace(token, "***").replace(sent, "***")
        return words(text)

    async def _all(self, terms: ListTerms) -> Mapping[str, Any]:
        items, name = path_of(terms.items), path_of(terms.name)
        after = None if terms.next is None else path_of(terms.next)
        found: dict[str, Any] = {}
        path: str | None = self._origin.base + terms.get
        for _ in range(PAGES_MAX):
            if path is None:
                return found
            answer = await self._asked("GET", path, bytes_max=LIST_BYTES_MAX)
            if answer.status != HTTPStatus.OK:
                raise PlatformError(self._said(answer))
            data = _data(answer)
            self._take(found_at(data, items), name, found)
            path = self._following(data, after, path)
        raise PlatformError(f"its list has more than {PAGES_MAX} pages")

    def _take(self, some: Any, name: Path, found: dict[str, Any]) -> None:
        if not isinstance(some, list):
            raise PlatformError("its list is none")
        for item in some:
            called = text_of(found_at(item, name))
            if called is None:
                continue
            # Of two with one name neither can be believed.
            found[called] = item if called not in found else None
            if len(found) > ITEMS_MAX:
                raise PlatformError(f"its list has more than {ITEMS_MAX} items")

    def _following(self, data: Any, after: Path | None, path: str) -> str | None:
        reference = None if after is None else text_of(found_at(data, after))
        return self._inside(reference, path) if reference else None

    def _inside(self, reference: str, beside: str) -> str:
        try:
            return self._origin.inside(reference, beside)
        except PlatformError as error:
            raise PlatformError(self.words(str(error))) from None

    def _task_path(self, answer: PlatformAnswer, task: TaskTerms, beside: str) -> str:
        if task.get is None:
            place = answer.headers.get("location")
            if place is None:
                raise PlatformError("it does not say where its task is")
            return self._inside(place, beside)
        assert task.id is not None
        number = text_of(found_at(_data(answer), path_of(task.id)))
        if number is None:
            raise PlatformError("it does not say which task it is")
        return self._origin.base + filled_path(task.get, {"id": number})

    async def _asked(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        bytes_max: int | None = None,
    ) -> PlatformAnswer:
        """The answer, once it is another than *not now*, for as long as the call may take."""
        sent = {"Accept": "application/json", "Accept-Encoding": "identity", "Connection": "close"}
        if content is not None:
            sent["Content-Type"] = "application/json"
        sent |= {**(headers or {}), **self._credentials()}
        request = ApiRequest(method, path, sent, content)
        if bytes_max is not None:
            request = ApiRequest(method, path, sent, content, bytes_max)
        until = asyncio.get_running_loop().time() + WAIT_S_MAX
        while True:
            async with self._turn():
                answer = await self._answered(request)
            if answer.status not in _BUSY:
                return answer
            if self._pause(answer) > until:
                raise failure_of(Effect.NOT_YET, self._said(answer))

    async def _answered(self, request: ApiRequest) -> PlatformAnswer:
        try:
            return await self._transport(request)
        except PlatformError as error:
            # It may quote what came instead of an answer: our own request, say.
            raise PlatformError(self.words(str(error))) from None

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Not more at once than it takes, nor more in a second."""
        async with self._free:
            loop = asyncio.get_running_loop()
            while (left := self._next_at - loop.time()) > 0:
                if left > WAIT_S_MAX:
                    what = f"not asked: it is to be left alone for {left:.0f} s more"
                    raise failure_of(Effect.NOT_YET, what)
                await asyncio.sleep(left)
            self._next_at = loop.time() + 1 / self._terms.per_second
            yield

    def _pause(self, answer: PlatformAnswer) -> float:
        """Leave it alone for as long as it says; until when that is."""
        told = answer.headers.get("retry-after", "")
        known = told.isascii() and told.isdigit()
        pause = min(float(told), AGAIN_S_MAX) if known else AGAIN_S
        self._next_at = max(self._next_at, asyncio.get_running_loop().time() + pause)
        return self._next_at

    async def _sent(self, request: ApiRequest) -> PlatformAnswer:
        """Over a connection, in a thread; it ends when nobody waits for it."""
        exchange = ApiExchange(self._origin)
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, exchange.ask, request)
        finally:
            exchange.hang_up()

    def _credentials(self) -> Mapping[str, str]:
        token = self._settings.token
        if token is None:
            return {}
        if not self._origin.is_private:
            do = "write https, or an address of this machine"
            raise HapteraError("the token would be sent where others can read it", do=do)
        if not token.isascii() or not token.isprintable():
            raise HapteraError("the token has characters that no header may have")
        kind, _, header = self._terms.auth.partition(" ")
        match kind:
            case "basic":
                pair = b64encode(f"{self._settings.user or ''}:{token}".encode()).decode()
                return {"Authorization": f"Basic {pair}"}
            case "header":
                return {header: token}
            case _:
                return {"Authorization": f"Bearer {token}"}

    def _said(self, answer: PlatformAnswer) -> str:
        """Its status, and its words about it."""
        try:
            phrase = HTTPStatus(answer.status).phrase
        except ValueError:
            phrase = "no status that is known"
        if 300 <= answer.status < 400:
            phrase += ", and nobody goes there: write the address that it has now"
        said = None
        if self._error is not None and answer.status >= 400:
            try:
                said = text_of(found_at(_data(answer), self._error))
            except PlatformError:
                said = None
        return self.words(f"it answers {answer.status} {phrase}{f': {said}' if said else ''}")


def _data(answer: PlatformAnswer) -> Any:
    try:
        return json.loads(answer.body, parse_int=_number)
    except (ValueError, RecursionError) as error:
        raise PlatformError(f"its answer is no JSON ({type(error).__name__})") from None


def _number(digits: str) -> int | float:
    """Whole numbers of any length; Python's own have a limit."""
    return int(digits) if len(digits) < 20 else float(digits)


def tag_of(answer: PlatformAnswer) -> str:
    """The tag of a state as it was read.

    Raises:
        Refused: it has none.
    """
    tag = answer.headers.get("etag")
    if tag is None:
        raise Refused("what is to be changed has no ETag")
    return tag
