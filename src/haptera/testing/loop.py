"""An event loop on a simulated clock: whatever sleeps, or waits for a deadline, waits no time."""

import asyncio
import math
import selectors

from haptera.core.state.limits import S
from haptera.testing.clock import Clock


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop that never waits: where nothing is to be done, simulated time passes."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(_Passing(clock))
        self._simulated = clock

    def time(self) -> float:
        return self._simulated.now / S


class _Passing(selectors.DefaultSelector):
    """A selector that lets simulated time pass where others would wait."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._simulated = clock

    def select(self, within_s: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if within_s is None or within_s > 0:
            wait_ns = None if within_s is None else math.ceil(within_s * S)
            self._simulated.run_on(wait_ns)
        return super().select(0)
