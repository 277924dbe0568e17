"""In which order large answers are sent: first come, first served, a few at once, at a rate."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

# So long a caller is left waiting; then it is asked to try again, and keeps its place.
WAIT_S: Final = 5.0
# Who has not asked again for so long has no place any more.
ABSENT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class ServingLimits:
    """How many are answered at once, and how many bytes a second they get together, if limited."""

    at_once: int
    bytes_per_s: float | None = None


@dataclass(slots=True)
class _Place:
    """One caller's: what it waits `here` for, the first of it first, or it has been away since."""

    here: deque[asyncio.Future[None]] = field(default_factory=deque)
    away_since: float = 0.0


@dataclass(slots=True)
class ServingOrder:
    """Who is answered and who waits; the limits are asked for each time, for they may change."""

    limits: Callable[[], ServingLimits]
    wait_s: float = WAIT_S
    _line: dict[str, _Place] = field(default_factory=dict)
    _answered: int = 0
    _free_at: float = 0.0

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[int | None]:
        """Wait for this caller's turn, which lasts as long as the context.

        How many are before it where that takes longer than a while; None: it is its turn.
        """
        here = self._enter(caller)
        try:
            await asyncio.wait({here}, timeout=self.wait_s)
            yield None if here.done() else self._before(caller)
        finally:
            self._leave(caller, here)

    def delay_s(self, size_bytes: int, now_s: float) -> float:
        """How long to wait before so many more bytes are sent."""
        rate = self.limits().bytes_per_s
        if rate is None:
            return 0.0
        begun = max(self._free_at, now_s)
        self._free_at = begun + size_bytes / rate
        return begun - now_s

    def _enter(self, caller: str) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        here = loop.create_future()
        self._line.setdefault(caller, _Place()).here.append(here)
        self._call(loop.time())
        return here

    def _leave(self, caller: str, here: asyncio.Future[None]) -> None:
        now_s = asyncio.get_running_loop().time()
        if here.done():
            self._answered -= 1
        else:
            place = self._line[caller]
            place.here.remove(here)
            place.away_since = now_s
        self._call(now_s)

    def _call(self, now_s: float) -> None:
        """Give turns to those who are here, in order; who is away does not hold the others up.

        Who waits for more than one is behind all others after each.
        """
        for caller, place in [*self._line.items()]:
            if not place.here and now_s - place.away_since > ABSENT_S:
                del self._line[caller]
        while self._answered < self.limits().at_once and (first := self._first()) is not None:
            place = self._line.pop(first)
            place.here.popleft().set_result(None)
            self._answered += 1
            if place.here:
                self._line[first] = place

    def _first(self) -> str | None:
        return next((caller for caller, place in self._line.items() if place.here), None)

    def _before(self, caller: str) -> int:
        return list(self._line).index(caller)
