"""What changed lately, kept for a while, so that a stream can go on where it broke off."""

import asyncio
import secrets
from collections import deque
from dataclasses import dataclass
from typing import Final

from haptera.api.backend import Backend
from haptera.model.entity import EntityId

CHANGES_KEPT: Final = 10_000
_TAG_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the feed, written `EPOCH.NUMBER`; an epoch ends where something may be missing."""

    epoch: str
    number: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.number}"


def parse_mark(text: str) -> Mark | None:
    epoch, dot, number = text.rpartition(".")
    fits = dot and number.isascii() and number.isdigit() and len(number) < 20
    return Mark(epoch, int(number)) if fits else None


class Feed:
    """One subscription to the backend, for any number of streams.

    Its epoch is the store's, and a word of its own: the numbers of changes begin anew with each
    process, and after an overrun.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._kept: deque[tuple[int, tuple[EntityId, ...]]] = deque()
        self._news = asyncio.Event()
        self.closed = False
        self._begin()

    @property
    def latest(self) -> Mark:
        return Mark(self._epoch, self._number)

    async def run(self) -> None:
        """Take in what the backend says, for ever."""
        while True:
            subscription = self._backend.subscribe()
            while not subscription.closed:
                self._take(*await subscription.next())
            self._begin()
            self._wake()

    def close(self) -> None:
        """Let all streams end: the server is about to."""
        self.closed = True
        self._wake()

    def has(self, mark: Mark) -> bool:
        """Whether all that changed after this mark is here."""
        return mark.epoch == self._epoch and self._floor <= mark.number <= self._number

    def since(self, mark: Mark) -> list[EntityId]:
        """What changed after a mark that it has, each entity once, sorted."""
        changed: set[EntityId] = set()
        for number, entities in reversed(self._kept):
            if number <= mark.number:
                break
            changed.update(entities)
        return sorted(changed, key=str)

    async def wait(self, within_s: float) -> bool:
        """Wait for news; false where none came in time."""
        news = self._news
        try:
            async with asyncio.timeout(within_s):
                await news.wait()
        except TimeoutError:
            return False
        return True

    def _begin(self) -> None:
        self._epoch = f"{self._backend.epoch}-{secrets.token_hex(_TAG_BYTES)}"
        self._kept.clear()
        self._floor = self._number = 0

    def _take(self, number: int, entities: tuple[EntityId, ...]) -> None:
        if len(self._kept) == CHANGES_KEPT:
            self._floor = self._kept.popleft()[0]
        self._kept.append((number, entities))
        self._number = number
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
