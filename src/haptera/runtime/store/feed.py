"""A store's last writes, for followers; answers wait until one of them has the write.

A standby acknowledges by asking for what comes next. While one keeps up, an answer is held until it
has what was written, or for REPLICATED_WITHIN_S: from then on answers are local, until it has
caught up.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from haptera.core.state.limits import S
from haptera.runtime.clock import now_ns

LOG_BITS: Final = 53
# Of what was written lately so much is kept; who lacks more takes the whole file.
KEPT_BYTES_MAX: Final = 16 << 20
# What one answer to a follower holds.
TOLD_BYTES_MAX: Final = 4 << 20
REPLICATED_WITHIN_S: Final = 1.0
# A standby that did not ask for so long is not there.
ABSENT_AFTER_S: Final = 5.0


class Follower(StrEnum):
    """Who follows: a standby, whose word lets answers go; or a parent below."""

    STANDBY = "standby"
    BELOW = "below"


class Durability(StrEnum):
    """Where what was acknowledged is: on this machine's disk alone, or on a standby's too."""

    LOCAL = "local"
    REPLICATED = "replicated"


@dataclass(frozen=True, slots=True)
class _Held:
    at: int
    answer: Callable[[], None]
    timer: asyncio.TimerHandle


class Feed:
    """The batches of one process's store, numbered from 1, in one loop; `log` names the process."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.log = secrets.randbits(LOG_BITS)
        self.at = 0
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self._acked = 0
        self._acked_ns: int | None = None
        self._keeps_up = False
        self._held: deque[_Held] = deque()
        self._news = asyncio.Event()

    def add(self, batch: bytes) -> None:
        """A commit is durable here."""
        self.at += 1
        self._kept.append(batch)
        self._kept_bytes += len(batch)
        while self._kept_bytes > KEPT_BYTES_MAX:
            self._kept_bytes -= len(self._kept.popleft())
        self._news.set()
        self._news = asyncio.Event()

    def since(self, log: int, at: int) -> list[bytes] | None:
        """What was written after a place, a part of it where it is much; None: not known."""
        first = self.at - len(self._kept)
        if log != self.log or not first <= at <= self.at:
            return None
        told: list[bytes] = []
        size = 0
        for batch in [*self._kept][at - first :]:
            size += len(batch)
            if told and size > TOLD_BYTES_MAX:
                break
            told.append(batch)
        return told

    async def wait(self, within_s: float) -> None:
        """Until something is written, or not for so long."""
        news = self._news
        try:
            async with asyncio.timeout(within_s):
                await news.wait()
        except TimeoutError:
            return

    def heard(self, follower: Follower, log: int, at: int) -> None:
        """A follower has all up to a place."""
        if follower is not Follower.STANDBY:
            return
        self._acked_ns = now_ns()
        if log == self.log and at <= self.at:
            self._acked = max(self._acked, at)
            self._keeps_up = self._keeps_up or self._acked == self.at
        while self._held and self._held[0].at <= self._acked:
            held = self._held.popleft()
            held.timer.cancel()
            held.answer()

    def answer(self, answer: Callable[[], None]) -> None:
        """Give an answer on what was written last, once a standby that keeps up has it."""
        if self._acked >= self.at or not self._is_followed():
            answer()
            return
        timer = self._loop.call_later(REPLICATED_WITHIN_S, self._give_up)
        self._held.append(_Held(self.at, answer, timer))

    @property
    def durability(self) -> Durability:
        """Of what is acknowledged now."""
        return Durability.REPLICATED if self._is_followed() else Durability.LOCAL

    @property
    def lag(self) -> int | None:
        """How many commits the standby lacks; None where there is none."""
        return self.at - self._acked if self._is_there() else None

    def _is_there(self) -> bool:
        at = self._acked_ns
        return at is not None and now_ns() - at < ABSENT_AFTER_S * S

    def _is_followed(self) -> bool:
        return self._keeps_up and self._is_there()

    def _give_up(self) -> None:
        """It does not keep up: no answer waits for it until it has caught up."""
        self._keeps_up = False
        held, self._held = self._held, deque()
        for one in held:
            one.timer.cancel()
            one.answer()
