"""Programs of others, as modules run them: no shell, bounds for time and output, one way to end.

    ended = await Program(["ipmitool", "sensor"], clean(IPMI_PASSWORD=password)).run(within_s=20)

A program has a session of its own. Where its time is over, or whoever waits for it is cancelled,
its whole process group is killed.
"""

import asyncio
import ctypes
import errno
import os
import resource
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Final

from haptera.model.errors import Code, HapteraError

# Of what a program prints, the end is kept.
OUTPUT_BYTES_MAX: Final = 64 << 10
# Of its complaints, in an error.
SAID_CHARACTERS_MAX: Final = 300
# Once a program has ended, others may hold its output open: they are not waited for longer.
HELD_OPEN_S: Final = 1.0

# The words before a command that have it run with less rights than who asks, if these are enough
# to read some files.
Lesser = Callable[[tuple[str, ...]], tuple[str, ...]]

_PR_SET_PDEATHSIG: Final = 1
_libc: Final = ctypes.CDLL(None)


class NotStartedError(HapteraError):
    """The program is not installed, or may not be run; `reason` is the system's word for it."""

    def __init__(self, name: str, reason: str, do: str) -> None:
        super().__init__(f"{name}: {reason}", do=do, code=Code.NOT_INSTALLED)
        self.reason = reason


class UnfitWordsError(NotStartedError):
    """No program can be given these words: they are too long, have a NUL byte, or are no text."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The end of a program: its exit status (below 0: a signal's), and what it printed."""

    status: int
    output: bytes
    complaints: bytes = b""
    # There was more of the output before.
    cut: bool = False

    @property
    def out(self) -> str:
        return self.output.decode(errors="replace")

    @property
    def errors(self) -> str:
        return self.complaints.decode(errors="replace")

    @property
    def last_error(self) -> str:
        lines = (line.strip() for line in reversed(self.errors.splitlines()))
        return next((line for line in lines if line), "no words")


def clean(**more: str) -> dict[str, str]:
    """An environment with nothing of ours but the search path."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", **more}


def no_lesser(_reads: tuple[str, ...]) -> tuple[str, ...]:
    """It has the rights of who asks."""
    return ()


@dataclass(frozen=True, slots=True)
class Program:
    """A program to run: its words, and all that it finds around it.

    `given` is what it reads, or a descriptor that it reads from; `output` and `errors` are
    descriptors that it writes to, where these are not to be had. It inherits those that it
    `passes`, and does `prepare` before it becomes the program.
    """

    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=clean)
    folder: Path | None = None
    given: bytes | int | None = None
    output: int = PIPE
    errors: int = PIPE
    output_bytes_max: int = OUTPUT_BYTES_MAX
    passes: tuple[int, ...] = ()
    prepare: Callable[[], None] | None = None

    async def run(self, within_s: float | None) -> ProgramResult:
        """Run it to its end; None: whoever calls bounds its time.

        Raises:
            NotStartedError: it cannot be started.
            TimeoutError: it has not ended in time, and was killed.
        """
        return await (await self.start()).ends(within_s)

    async def done(self, within_s: float) -> ProgramResult:
        """Run it to its good end.

        Raises:
            HapteraError: it cannot be started, does not end in time, or fails, in its own words.
        """
        try:
            ended = await self.run(within_s)
        except TimeoutError:
            raise HapteraError(f"{self.words[0]} has not ended within {within_s:g} s") from None
        if ended.status != 0:
            said = ended.errors.strip()[-SAID_CHARACTERS_MAX:]
            raise HapteraError(f"{self.words[0]}: {said or f'status {ended.status}'}")
        return ended

    async def start(self) -> "RunningProgram":
        """Start it; it is to be waited for, by `ends`.

        Raises:
            NotStartedError: it cannot be started.
        """
        loop = asyncio.get_running_loop()
        try:
            with _to_read(self.given) as stdin:
                transport, watched = await loop.subprocess_exec(
                    lambda: _Watched(self.output_bytes_max),
                    *self.words,
                    stdin=stdin,
                    stdout=self.output,
                    stderr=self.errors,
                    env=self.environment,
                    cwd=self.folder,
                    start_new_session=True,
                    pass_fds=self.passes,
                    preexec_fn=self.prepare,
                )
        except ValueError as error:
            do = "leave such bytes out of its words and its environment"
            raise UnfitWordsError(self.words[0], str(error), do) from None
        except OSError as error:
            reason = error.strerror or str(error)
            if error.errno == errno.E2BIG:
                do = "give it less, or a file to read"
                raise UnfitWordsError(self.words[0], reason, do) from None
            do = "install it where this runs, or name another"
            if isinstance(error, PermissionError):
                do = "let the user run it as whom this runs"
            raise NotStartedError(self.words[0], reason, do) from None
        return RunningProgram(transport, watched)


class RunningProgram:
    """A program that was started."""

    def __init__(self, transport: asyncio.SubprocessTransport, watched: "_Watched") -> None:
        self._transport = transport
        self._watched = watched

    async def ends(self, within_s: float | None) -> ProgramResult:
        """Its end, once it comes.

        Raises:
            TimeoutError: it has not ended in time, and was killed.
        """
        try:
            async with asyncio.timeout(within_s):
                await self._watched.ended.wait()
                with suppress(TimeoutError):
                    async with asyncio.timeout(HELD_OPEN_S):
                        await self._watched.closed.wait()
        finally:
            await self._end()
        status = self._transport.get_returncode()
        assert status is not None
        return self._watched.result(status)

    async def _end(self) -> None:
        """See that it is gone, with all in its group."""
        if not self._watched.ended.is_set():
            # Not reaped yet, as far as is known here, so the number is its own.
            with suppress(ProcessLookupError):
                os.killpg(self._transport.get_pid(), signal.SIGKILL)
            await self._watched.ended.wait()
        self._transport.close()


class _Watched(asyncio.SubprocessProtocol):
    """Keeps the end of what a program prints, and knows when that is all."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._kept = {1: bytearray(), 2: bytearray()}
        self._count = 0
        self.ended = asyncio.Event()
        self.closed = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = self._kept[fd]
        kept += data
        self._count += len(data) if fd == 1 else 0
        if len(kept) > 2 * self._bytes_max:  # not each time: it is moved
            del kept[: -self._bytes_max]

    def process_exited(self) -> None:
        self.ended.set()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.closed.set()

    def result(self, status: int) -> ProgramResult:
        output, complaints = (bytes(one[-self._bytes_max :]) for one in self._kept.values())
        return ProgramResult(status, output, complaints, cut=self._count > self._bytes_max)


@contextmanager
def _to_read(given: bytes | int | None) -> Iterator[int]:
    """A descriptor: a file in memory can also be opened anew as /dev/stdin, by who is confined."""
    if not isinstance(given, bytes):
        yield DEVNULL if given is None else given
        return
    descriptor = os.memfd_create("given")
    try:
        os.write(descriptor, given)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def unbound(file_bytes_max: int | None = None) -> None:
    """Take the bound of this process away, as far as the machine has none: a `prepare`.

    A module's own process is bounded in memory. `file_bytes_max` is how large a file may become
    that the program writes.
    """
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    if file_bytes_max is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes_max, file_bytes_max))


def tied(file_bytes_max: int | None = None) -> None:
    """As `unbound`; and the program is killed where whoever started it is."""
    unbound(file_bytes_max)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
