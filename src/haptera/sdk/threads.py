"""Plain functions of a module, each in a thread of its own, and what they say of their progress."""

import asyncio
import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Any, Final

from haptera.sdk.target import Refused

# What a thread's stack may take of the address space that a module is allowed.
STACK_BYTES: Final = 1 << 20
# So often at the most of each call; what is said in between is told then, the last of it.
PROGRESS_EVERY_S: Final = 1.0

Told = tuple[str, float | None]


class Threads:
    """Runs functions beside the event loop; `threads_max` of them at once, hung ones among them.

    A thread cannot be ended. Where nobody waits for its function any more, it hangs; until it
    ends, nothing else is begun under its key.
    """

    def __init__(self, threads_max: int) -> None:
        self._threads_max = threads_max
        self._count = 0
        self._running: defaultdict[Hashable, set[asyncio.Future[Any]]] = defaultdict(set)
        threading.stack_size(STACK_BYTES)

    async def run(self, key: Hashable, function: Callable[[], Any]) -> Any:
        """What the function returns or raises.

        Raises:
            Refused: it was not begun.
        """
        if any(one.cancelled() for one in self._running.get(key, ())):
            raise Refused("an earlier call was given up, but still runs and cannot be ended")
        if self._count >= self._threads_max:
            raise Refused(f"{self._threads_max} calls run in threads already, the maximum")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        self._count += 1
        self._running[key].add(done)

        def end(result: Any, error: BaseException | None) -> None:
            self._count -= 1
            self._running[key].discard(done)
            if not self._running[key]:
                del self._running[key]
            if not done.done() and error is not None:
                done.set_exception(error)
            elif not done.done():
                done.set_result(result)

        threading.Thread(target=_thread, args=(loop, function, end), daemon=True).start()
        return await done


def _thread(
    loop: asyncio.AbstractEventLoop,
    function: Callable[[], Any],
    end: Callable[[Any, BaseException | None], None],
) -> None:
    result: Any = None
    error: BaseException | None = None
    try:
        result = function()
    except StopIteration:
        error = RuntimeError("it raised StopIteration")
    except Exception as raised:  # noqa: BLE001  the author's code may raise anything
        error = raised
    # The loop may be closed by now: then nobody asks.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(end, result, error)


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
