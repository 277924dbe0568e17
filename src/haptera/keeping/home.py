"""What is known of one service between processes: its directory, its keeper's notes, its pids."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL
from typing import Final

from haptera.keeping import keeper, procfs
from haptera.kinds.service import Run
from haptera.model.errors import HapteraError
from haptera.sdk.commands import Program, ProgramResult

# In so much of what a service wrote last its last line is looked for.
LAST_BYTES_MAX: Final = 4_096
# A keeper begins in milliseconds, but for what a machine does besides.
BEGINS_WITHIN_S: Final = 60


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """One process, distinguished from later ones of its number by its start."""

    pid: int
    started: int

    def __str__(self) -> str:
        return f"{self.pid} {self.started}"

    @property
    def lives(self) -> bool:
        return procfs.start_time(self.pid) == self.started

    def open(self) -> int | None:
        """A pidfd of this very process; None if it is dead."""
        try:
            pidfd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return None
        if self.lives:
            return pidfd
        os.close(pidfd)
        return None

    async def ends(self, within_s: float | None) -> bool:
        """Whether it ends within so many seconds; None waits for as long as it takes."""
        if (pidfd := self.open()) is None:
            return True
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(pidfd, ended.set)
        try:
            async with asyncio.timeout(within_s):
                await ended.wait()
        except TimeoutError:
            return False
        else:
            return True
        finally:
            loop.remove_reader(pidfd)
            os.close(pidfd)


@dataclass(frozen=True, slots=True)
class ServiceRecord:
    """What the keeper wrote when it started the service."""

    service: ServiceProcess
    keeper: ServiceProcess
    digest: str


@dataclass(frozen=True, slots=True)
class Home:
    """A service's directory."""

    path: Path

    @property
    def output(self) -> Path:
        """What the service has written since its last start."""
        return self.path / keeper.OUTPUT

    def record(self) -> ServiceRecord | None:
        """The last start since the machine's boot; None where there was none."""
        state = keeper.read_state(str(self.path / keeper.STATE))
        if state.get("boot") != [procfs.boot_id()]:
            return None
        try:
            service, kept_by = (
                ServiceProcess(*map(int, state[name])) for name in ("service", "keeper")
            )
            return ServiceRecord(service, kept_by, state["digest"][0])
        except (KeyError, TypeError, ValueError, IndexError):
            return None

    @property
    def lives(self) -> bool:
        """Whether what was started last is there still."""
        record = self.record()
        return record is not None and record.service.lives

    def run(self) -> Run:
        """Whether it runs, and if not, how that came."""
        record = self.record()
        if record is None:
            return Run.STOPPED
        if record.service.lives:
            return Run.RUNNING
        ended_well = self._status() == 0 or (self.path / keeper.STOP).exists()
        # A status that nobody could write down (the keeper was killed) counts as a failure.
        return Run.STOPPED if ended_well else Run.FAILED

    def how_it_ended(self) -> str:
        """In words, for people: with the last line that it wrote."""
        last = self.last_words()
        return f"{self._end()}: {last}" if last else self._end()

    def last_words(self) -> str:
        """The last line that the service wrote, as a person may read it; empty where none is."""
        try:
            with procfs.open_plain(str(self.output)) as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - LAST_BYTES_MAX))
                lines = file.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        said = ("".join(filter(str.isprintable, line)).strip() for line in reversed(lines))
        return next(filter(None, said), "")

    def limit(self, lines: tuple[str, ...]) -> None:
        """Have what is started next keep to these limits, as its keeper reads them."""
        path = self.path / keeper.LIMITS
        path.unlink(missing_ok=True)
        if lines:
            path.write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")

    def _end(self) -> str:
        if (exceeded := self._text(keeper.EXCEEDED)) is not None:
            return f"it was stopped: {exceeded}"
        match self._status():
            case None:
                return "it ended and its keeper did not live to see how"
            case status if status < 0:
                return f"it was killed by {_signal_name(-status)}"
            case status:
                return f"it ended with status {status}"

    def expect_end(self) -> None:
        """Note that the service is about to be stopped, so that its end is no failure."""
        path = self.path / keeper.STOP
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

    def make(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)

    async def keep(
        self,
        digest: str,
        command: list[str],
        environment: Mapping[str, str],
        passes: tuple[int, ...] = (),
    ) -> ProgramResult:
        """Start a keeper of a command, which goes on alone: how that went.

        Raises:
            HapteraError: it cannot be started, or hangs.
        """
        words = keeper.command_line(digest, command)
        program = Program(words, environment, self.path, output=DEVNULL, passes=passes)
        try:
            return await program.run(BEGINS_WITHIN_S)
        except TimeoutError:
            raise HapteraError(f"{self.path.name} did not begin in {BEGINS_WITHIN_S} s") from None

    def _status(self) -> int | None:
        text = self._text(keeper.STATUS)
        try:
            return None if text is None else int(text)
        except ValueError:
            return None

    def _text(self, name: str) -> str | None:
        """The content of one of its small files; None where it is none."""
        try:
            with procfs.open_plain(str(self.path / name)) as file:
                text = file.read(LAST_BYTES_MAX).decode(errors="replace")
        except FileNotFoundError:
            return None
        return "".join(filter(str.isprintable, text))


def home_of(run_dir: Path, service: str) -> Home:
    """The directory of this service, which is of a name that was checked."""
    return Home(run_dir / "services" / service)


def replica_home(run_dir: Path, replica: str) -> Home:
    """The directory of this replica, which is a service's too, in a folder of their own."""
    return Home(run_dir / "replicas" / replica)


def replica_homes(run_dir: Path) -> list[Home]:
    """The directories of all replicas that were ever started on this node."""
    return [Home(path) for path in sorted((run_dir / "replicas").glob("*"))]


@contextlib.contextmanager
def session(leader: ServiceProcess) -> Iterator[list[int]]:
    """A pidfd of each process in the session that a living process leads."""
    pidfds: list[int] = []
    with contextlib.ExitStack() as stack:
        for pid in procfs.in_session(leader.pid) if leader.lives else ():
            with contextlib.suppress(ProcessLookupError):
                pidfds.append(os.pidfd_open(pid))
                stack.callback(os.close, pidfds[-1])
        yield pidfds


def send_all(pidfds: list[int], number: signal.Signals) -> None:
    for pidfd in pidfds:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, number)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
