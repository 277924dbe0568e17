"""Work that may take any memory or time, done in a process of its own: bytes in, bytes out.

The question and the answer lie in memory files, which both sides hold. A process does one piece of
work and is gone with it: what it took is given back, and what kills it kills nothing else.
"""

import asyncio
import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from haptera.model.errors import Code, HapteraError
from haptera.runtime.processes.confinement.confine import confine
from haptera.runtime.processes.forking import Child, LoopZygote
from haptera.runtime.processes.output import Output
from haptera.runtime.processes.process import log_of

# Behind all that somebody waits for, the daemon and its modules above all.
NICENESS: Final = 10
# What a worker may print; it has nothing to say but why it dies.
OUTPUT_BYTES_MAX: Final = 64 << 10
# At its work, before it is a worker, a process imports for about so long.
_START_S: Final = 5


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one piece of work may take: address space, Python and all; its answer; its time."""

    memory_bytes_max: int
    answer_bytes_max: int
    within_s: float


@dataclass(frozen=True, slots=True)
class Workers:
    """Does pieces of work of one sort, `at_once` of them at the most; the others wait.

    `target` is a fork target that calls `work`. Needs a running loop.
    """

    name: str
    target: str
    zygote: LoopZygote
    log_dir: Path
    bounds: Bounds
    turns: asyncio.Semaphore

    async def ask(self, question: bytes) -> bytes:
        """What a worker answers.

        Raises:
            HapteraError: it was too slow, took too much, or could not be started.
        """
        async with self.turns:
            asked, answered = _memory_file("question"), _memory_file("answer")
            try:
                os.pwrite(asked, question, 0)
                how = await self._run(asked, answered)
                if how is not None:
                    raise HapteraError(
                        f"the {self.name} was ended: {how}", do="send less at once", code=Code.LIMIT
                    )
                return _content(answered)
            except OSError as error:
                text = f"the {self.name} cannot work: {error.strerror or error}"
                raise HapteraError(text, do="try again later") from None
            finally:
                os.close(asked)
                os.close(answered)

    async def _run(self, asked: int, answered: int) -> str | None:
        """Run a process to its end; how it ended, unless that was well."""
        output = Output(log_of(self.log_dir, self.name))
        output.allow(OUTPUT_BYTES_MAX)
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def end(status: int) -> None:
            if not ended.done():
                ended.set_result(status)

        arguments = {
            "name": self.name,
            "memory_bytes_max": self.bounds.memory_bytes_max,
            "answer_bytes_max": self.bounds.answer_bytes_max,
            "cpu_s_max": int(self.bounds.within_s) + _START_S,
        }
        forked = self.zygote.fork(
            self.target, arguments, (asked, answered), output=output.writing, ended=end
        )
        output.close_writing()
        try:
            child = await forked
            if not await self._ended(child, ended):
                return f"no answer within {self.bounds.within_s:.0f} s"
            status = ended.result()
            return output.how_it_ended(status) if status else None
        finally:
            output.close()

    async def _ended(self, child: Child, ended: asyncio.Future[int]) -> bool:
        """Wait for the end of a process, and end it where that is late: then it is False."""
        try:
            async with asyncio.timeout(self.bounds.within_s):
                await ended
        except TimeoutError:
            return False
        finally:
            if not ended.done() or ended.cancelled():
                signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)
            os.close(child.pidfd)
        return True


def work(
    arguments: dict[str, Any], descriptors: list[int], answer: Callable[[bytes], bytes]
) -> None:
    """Be a worker, until it has answered: for fork targets."""
    memory_bytes_max: int = arguments["memory_bytes_max"]
    confine(arguments["name"], memory_bytes_max)
    os.nice(NICENESS)
    for kind, most in (
        (resource.RLIMIT_CPU, arguments["cpu_s_max"]),
        (resource.RLIMIT_FSIZE, arguments["answer_bytes_max"]),
    ):
        resource.setrlimit(kind, (most, most))
    asked, answered = descriptors
    try:
        said = answer(_content(asked))
    except MemoryError:
        said = None  # What was held is let go before anything is said of it.
    if said is None:
        raise HapteraError(
            f"it takes more than {memory_bytes_max >> 20} MiB", do="send less", code=Code.LIMIT
        )
    written = 0
    while written < len(said):
        written += os.pwrite(answered, said[written:], written)


def _memory_file(name: str) -> int:
    return os.memfd_create(f"haptera {name}", os.MFD_CLOEXEC)


def _content(descriptor: int) -> bytes:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0) if size else b""
