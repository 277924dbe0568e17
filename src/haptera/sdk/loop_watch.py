"""Which function of a module blocks the event loop, and so all its calls: a thread that watches."""

import asyncio
import contextlib
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

# The loop is asked for a turn so often, while calls are under way.
BEAT_S: Final = 0.5
# So many beats without a turn and it is blocked. A beat counts where its thread slept, or had the
# processor for half of it: on a busy machine it may only wait for one.
BEATS_MISSED: Final = 4
_CPU_TICKS: Final = round(BEAT_S * os.sysconf("SC_CLK_TCK") / 2)


class LoopWatch:
    """Watches the running loop from a thread.

    A function that blocks it is printed at once, with its stack. When the loop is free again,
    `tell` is called in it with what blocked it, in words, and for how many ms; before an answer
    is sent, if `tell_found` is called there. `functions` are the names of those that the module
    declares: one of these is named where it is on the stack.
    """

    def __init__(
        self, functions: Callable[[], set[str]], tell: Callable[[str, int], object]
    ) -> None:
        self._functions = functions
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._of = threading.get_ident()
        self._stat = Path(f"/proc/self/task/{threading.get_native_id()}/stat")
        self._under_way = 0
        self._found: tuple[str, int] | None = None  # what blocks the loop, and for how many ms
        self._working = threading.Event()
        self._turned = threading.Event()
        threading.Thread(target=self._watch, name="loop watch", daemon=True).start()

    @contextmanager
    def during(self) -> Iterator[None]:
        """Watch while this is under way; the thread sleeps where nothing is."""
        self._under_way += 1
        self._working.set()
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._working.clear()

    def tell_found(self) -> None:
        """The place that has blocked the loop until now, if it was found and not reported yet."""
        found, self._found = self._found, None
        if found is not None:
            self._tell(*found)

    def _watch(self) -> None:
        # The loop is closed when the process ends.
        with contextlib.suppress(RuntimeError):
            while True:
                self._working.wait()
                self._turned.clear()
                self._loop.call_soon_threadsafe(self._turned.set)
                self._wait()
                threading.Event().wait(BEAT_S)

    def _wait(self) -> None:
        """Until the loop has its turn; what keeps it from that is found meanwhile."""
        blocking: str | None = None
        beats, ticks = 0, self._scheduled()[1]
        while not self._turned.wait(BEAT_S):
            before, (state, ticks) = ticks, self._scheduled()
            beats += state != "R" or ticks - before >= _CPU_TICKS
            if beats == BEATS_MISSED and blocking is None:
                blocking = self._blocking()
            if blocking is not None:
                self._found = blocking, round(beats * BEAT_S * 1000)
        if blocking is not None:
            self._loop.call_soon_threadsafe(self.tell_found)

    def _scheduled(self) -> tuple[str, int]:
        """The state of the loop's thread, and for how many ticks it had the processor so far."""
        fields = self._stat.read_text().rpartition(")")[2].split()
        return fields[0], int(fields[11]) + int(fields[12])

    def _blocking(self) -> str | None:
        """What the loop is at, if that is code that it runs rather than itself; printed, too."""
        stack = _stack(sys._current_frames().get(self._of))
        if not stack:
            return None
        names = [frame.f_code.co_name for frame in stack]
        declared = self._functions()
        name = next((one for one in reversed(names) if one in declared), names[-1])
        innermost = stack[0]
        place = f"{Path(innermost.f_code.co_filename).name}:{innermost.f_lineno}"
        text = f"{name} blocks the event loop at {place}"
        traceback.print_stack(innermost)
        print(text, file=sys.stderr, flush=True)  # noqa: T201  into the module's log
        return text


def _stack(frame: FrameType | None) -> list[FrameType]:
    """What the loop runs, the innermost frame first; nothing where it waits itself."""
    found: list[FrameType] = []
    while frame is not None:
        if _is(frame, "asyncio.events", "_run"):
            return found
        found.append(frame)
        frame = frame.f_back
    return []


def _is(frame: FrameType, module: str, function: str) -> bool:
    return (frame.f_globals.get("__name__"), frame.f_code.co_name) == (module, function)
