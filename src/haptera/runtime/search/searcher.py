"""Searches in worker processes: one for each question, forked by the zygote, gone with its answer.

So no question leaves anything behind for the next one: what it took is given back, and what kills
its process kills nothing else.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from haptera.model.effects import SearchPlan
from haptera.model.events import Event, PlanFailed
from haptera.runtime.clock import now_ns
from haptera.runtime.processes.child_handle import ChildHandle
from haptera.runtime.processes.forking import Child, LoopZygote
from haptera.runtime.processes.ipc import Frame, FrameLink
from haptera.runtime.processes.output import Output
from haptera.runtime.processes.process import log_of
from haptera.runtime.search.search_frames import search_frame, searched_of

# The whole of a worker's address space, Python and all (some 40 MiB). Each state that a search
# comes to takes some 500 bytes.
MEMORY_BYTES_MAX: Final = 512 << 20
# What a worker may print; it has nothing to say but why it dies.
OUTPUT_BYTES_MAX: Final = 64 << 10
TARGET: Final = "haptera.runtime.search.search_process:search_process"


class Searcher:
    """Carries out `SearchPlan`; `PlanFound` or `PlanFailed` follows. Needs a running loop.

    What workers print when they die goes to `log_dir`.
    """

    def __init__(
        self,
        zygote: LoopZygote,
        deliver: Callable[[list[Event]], None],
        log_dir: Path,
        memory_bytes_max: int = MEMORY_BYTES_MAX,
        target: str = TARGET,
    ) -> None:
        self._target = target
        self._zygote = zygote
        self._deliver = deliver
        self._log = log_of(log_dir, "planner")
        self._memory_bytes_max = memory_bytes_max
        self._workers: set[_Worker] = set()

    def search(self, search: SearchPlan) -> None:
        try:
            output = Output(self._log)
        except OSError as error:
            gone: list[Event] = [PlanFailed(search.id, f"was not started: {error}")]
            asyncio.get_running_loop().call_soon(self._deliver, gone)
            return
        ours, theirs = socket.socketpair()
        worker = _Worker(search, ours, output, self._deliver)
        self._workers.add(worker)
        arguments = {"memory_bytes_max": self._memory_bytes_max}
        with theirs:
            forked = self._zygote.fork(
                self._target,
                arguments,
                (theirs.fileno(),),
                output=output.writing,
                ended=lambda status: self._end(worker, output.how_it_ended(status)),
            )
        output.close_writing()
        forked.add_done_callback(lambda forked: self._forked(worker, forked))

    def close(self) -> None:
        """Let go of all workers, which ends them; nothing is delivered any more."""
        for worker in self._workers:
            worker.let_go()
        self._workers.clear()

    def _forked(self, worker: "_Worker", forked: asyncio.Future[Child]) -> None:
        if (error := forked.exception()) is not None:
            self._end(worker, f"was not started: {error}")
        elif worker in self._workers:
            worker.child.take(forked.result().pidfd)
        else:
            os.close(forked.result().pidfd)

    def _end(self, worker: "_Worker", text: str) -> None:
        """Its process is gone, or there never was one."""
        if worker in self._workers:
            self._workers.discard(worker)
            worker.end(text)


class _Worker:
    """One worker's process, from the moment it was asked for; it tells once what came of it."""

    def __init__(
        self,
        search: SearchPlan,
        link: socket.socket,
        output: Output,
        deliver: Callable[[list[Event]], None],
    ) -> None:
        self._search = search.id
        self._output = output
        self._deliver = deliver
        self._told = False
        self.child = ChildHandle()
        output.allow(OUTPUT_BYTES_MAX)
        loop = asyncio.get_running_loop()
        within_s = max(0, search.deadline_at - now_ns()) / 1e9
        late = f"was ended: no answer within {within_s:.0f} s"
        self._timer = loop.call_later(within_s, self._give_up, late)
        self._link = FrameLink(link, self._take, self._broken)
        try:
            self._link.send(search_frame(search))
        except ValueError as error:
            loop.call_soon(self._give_up, f"was not asked: {error}")

    def end(self, text: str) -> None:
        """It is gone; what it said last is still in the socket."""
        self._link.drain()
        self._tell(PlanFailed(self._search, text))
        self.let_go()

    def let_go(self) -> None:
        """Hear of it no more, and have it ended if it is there."""
        self._timer.cancel()
        self._link.close()
        self._output.close()
        self.child.kill()
        self.child.close()

    def _take(self, frames: list[Frame]) -> None:
        for frame in frames:
            searched = searched_of(frame)
            if searched.search != self._search:
                raise ValueError("it answered another question")
            self._tell(searched)
            self.child.kill()  # There is nothing left for it to do.

    def _broken(self, text: str | None) -> None:
        """What it says is no use; or it has hung up, which is no news: it is about to end."""
        if text is not None:
            self._give_up(f"was ended: {text}")

    def _give_up(self, text: str) -> None:
        self._tell(PlanFailed(self._search, text))
        self._link.close()
        self.child.kill()

    def _tell(self, event: Event) -> None:
        self._timer.cancel()
        if not self._told:
            self._told = True
            self._deliver([event])
