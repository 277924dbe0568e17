"""How far long steps are, as their functions say, told no more often than anybody reads it."""

import asyncio
from collections.abc import Callable
from typing import Final

# So often at the most of each call; what is said in between is told then, the last of it.
PROGRESS_EVERY_S: Final = 1.0

Told = tuple[str, float | None]


class ProgressTeller:
    """Takes what functions say of their calls, from any thread; `send` tells it on, in the loop."""

    def __init__(self, send: Callable[[int, str, float | None], object]) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        # Of each call that told something lately, what it has said since.
        self._since: dict[int, Told | None] = {}

    def say(self, call: int, text: str, done: float | None) -> None:
        """A call is so far: in words, and as a share of 1 where that is known."""
        self._loop.call_soon_threadsafe(self._take, call, text, done)

    def _take(self, call: int, text: str, done: float | None) -> None:
        if call in self._since:
            self._since[call] = text, done
            return
        self._since[call] = None
        self._send(call, text, done)
        self._loop.call_later(PROGRESS_EVERY_S, self._go_on, call)

    def _go_on(self, call: int) -> None:
        if (said := self._since.pop(call)) is not None:
            self._take(call, *said)
