"""Requests to a parent that change nothing desired."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from haptera.api.backend import Execute
from haptera.core.sync.parents import asked_of, subject_of
from haptera.daemon.tree.below import Below
from haptera.model.changes import Cause
from haptera.model.events import Event, HandedDown
from haptera.rest.unclaimed import InvitationView
from haptera.runtime.store.feed import Feed
from haptera.runtime.store.keyed import Held, KeptAnswer, RequestKey
from haptera.runtime.store.optimistic_write import WriteError
from haptera.runtime.store.sqlite_writer import Failure
from haptera.runtime.store.store import Store, kept


@dataclass(frozen=True, slots=True)
class ParentOrders:
    """A request is noted, and followed by standbys, before the engine hears of it."""

    store: Store
    feed: Feed
    below: Below
    deliver: Callable[[Iterable[Event]], None]
    execute: Execute
    invite: Callable[[str], Coroutine[Any, Any, InvitationView]]
    evict: Callable[[str], Coroutine[Any, Any, int | None]]

    async def request(self, request: HandedDown, who: str, what: str) -> None:
        if (node := asked_of(request)) is not None:
            self.below.check_reach(node)
        kept(await asyncio.wrap_future(self.store.note(who, what, subject_of(request), request)))
        followed = asyncio.Event()
        self.feed.answer(followed.set)
        await followed.wait()
        self.deliver([request])

    async def begin_keyed(self, key: RequestKey, sha256: bytes) -> Held | None:
        found = await asyncio.wrap_future(self.store.begin_keyed(key, sha256))
        if isinstance(found, Failure):
            raise WriteError(Cause.STORAGE, found.text, do="check the disk, then try again")
        return found

    async def end_keyed(self, key: RequestKey, answer: KeptAnswer | None) -> None:
        kept(await asyncio.wrap_future(self.store.end_keyed(key, answer)))
