"""The loop: feeds the engine what happened, and hands on what it wants done."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from haptera.core.engine import Engine
from haptera.core.state.intake import admit
from haptera.model.effects import Effect
from haptera.model.events import Event, Ticked, WallClockSet
from haptera.runtime.clock import now_ns, wall_offset_ns

# The engine hears of a wall clock that was set by more than this.
CLOCKED_NS = 1_000_000_000
# How long one wait may be: the clock runs on while the machine sleeps, a timer does not.
WAIT_S_MAX = 1.0


class Driver:
    """One engine, its inbox and its clock. All of it is used from one thread, the loop's.

    `turned` is called for each turn with the number of its events, and its start.
    """

    def __init__(
        self,
        engine: Engine,
        turned: Callable[[int, int], None] | None = None,
    ) -> None:
        self._engine = engine
        self._turned = turned
        self._inbox: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._clocked_ns: int | None = None

    def deliver(self, events: Iterable[Event]) -> None:
        """Something happened; the engine hears of it in its next turn, in this order."""
        self._inbox.extend(events)
        self._arrived.set()

    def waiting(self) -> int:
        """How many events the engine has not heard of yet."""
        return len(self._inbox)

    async def run(self, perform: Callable[[list[Effect]], None]) -> None:
        """Take turns until cancelled, with what the engine wants done handed to `perform`.

        That never waits, so that effects keep their order; what comes of them is delivered.
        """
        perform(self._turn())
        while True:
            await self._wait()
            perform(self._turn())

    def _turn(self) -> list[Effect]:
        self._look_at_clock()
        batch = admit(self._inbox)
        began_at = now_ns()
        effects = self._engine.handle(batch or [Ticked()], began_at)
        if self._turned is not None:
            self._turned(len(batch), began_at)
        return effects

    def _look_at_clock(self) -> None:
        offset_ns = wall_offset_ns()
        if self._clocked_ns is None or abs(offset_ns - self._clocked_ns) > CLOCKED_NS:
            self._clocked_ns = offset_ns
            self._inbox.appendleft(WallClockSet(offset_ns))

    async def _wait(self) -> None:
        if self._inbox:
            await asyncio.sleep(0)  # let sockets be read between two full batches
            return
        self._arrived.clear()
        deadline = self._engine.deadline()
        wait_s = WAIT_S_MAX if deadline is None else (deadline - now_ns()) / 1e9
        try:
            async with asyncio.timeout(min(max(wait_s, 0.0), WAIT_S_MAX)):
                await self._arrived.wait()
        except TimeoutError:
            pass
