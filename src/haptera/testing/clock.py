"""Clocks of our own: what is to happen when, in one order for one seed, and what machines show."""

import heapq
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

_MILLION = 1_000_000


class Clock:
    """Simulated time in ns, and the events on it. Randomness comes in streams by name.

    A stream of its own for each consumer: a new consumer never shifts what another draws.
    `happened` counts the faults that came about: a fault that never does proves nothing.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = 1_000_000_000
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        self._streams: dict[str, Random] = {}
        self.happened: Counter[str] = Counter()

    def rng(self, name: str) -> Random:
        """The random stream of this name."""
        if name not in self._streams:
            self._streams[name] = Random(f"{self.seed}/{name}")
        return self._streams[name]

    def chance(self, stream: str, fault: str, share: float) -> bool:
        """Whether this fault comes about now, as it does in this share of cases."""
        happens = share > 0 and self.rng(stream).random() < share
        self.happened[fault] += happens
        return happens

    def after(self, delay_ns: int, function: Callable[..., None], *args: Any) -> None:
        """Call the function then; what is due at one instant goes by the order of asking."""
        self._count += 1
        heapq.heappush(self._heap, (self.now + max(0, delay_ns), self._count, function, args))

    def run_on(self, wait_ns: int | None) -> None:
        """Let time pass until the next events, or by so much if they come later."""
        ends = [at for at, *_ in self._heap[:1]]
        if wait_ns is not None:
            ends.append(self.now + wait_ns)
        if not ends:
            raise RuntimeError("nothing will ever happen, and somebody waits for it")
        self.run_until(min(ends))

    def run_until(self, end: int, done: Callable[[], bool] | None = None) -> bool:
        """Let time pass until then, or until `done`; tells whether it was done."""
        while self._heap and self._heap[0][0] <= end:
            if done is not None and done():
                return True
            self.now, _, function, args = heapq.heappop(self._heap)
            function(*args)
        self.now = max(self.now, end)
        return done is not None and done()


class MachineClock:
    """What a machine counts since its boot, in ns: from another time than others, fast or slow.

    It shows `origin` at the world's 0, and counts `ppm` more than 1,000,000 in so many of its ns.
    """

    def __init__(self, clock: Clock, boot: str, origin: int = 0, ppm: int = 0) -> None:
        self.boot = boot
        self._clock = clock
        self._origin = origin
        self._counts = _MILLION + ppm

    @property
    def now(self) -> int:
        """What it shows now."""
        return self.shown(self._clock.now)

    def shown(self, at: int) -> int:
        """What it shows at this time of the world."""
        return self._origin + at * self._counts // _MILLION

    def reaches(self, shown: int) -> int:
        """At what time of the world it first shows this, or more."""
        return -((self._origin - shown) * _MILLION // self._counts)

    def later(self, at: int, ns: int) -> int:
        """At what time of the world it shows so many ns more, or less, than it does at this one."""
        return self.reaches(self.shown(at) + ns)
