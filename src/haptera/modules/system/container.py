"""One run of a system: an OCI runtime makes it ready, lets it go, and clears it away."""

import contextlib
import os
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Final

from haptera.keeping import procfs
from haptera.keeping.home import ServiceProcess
from haptera.sdk import HapteraError, Refused
from haptera.sdk.commands import (
    SAID_CHARACTERS_MAX,
    NotStartedError,
    Program,
    ProgramResult,
    unbound,
)

RUNTIME: Final = "runc"
PACKAGE: Final = "runc"
# How long the runtime itself may take.
ACTS_WITHIN_S: Final = 60.0
KILLED_WITHIN_S: Final = 2.0
_NUMBER: Final = re.compile(r"[0-9]{1,3}")
# How the runtime words what went wrong: time="…" level=error msg="…".
_SAID: Final = re.compile(r'level=error msg="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Runtime:
    """The runtime, with the folder in which it keeps what it knows."""

    state: Path

    async def create(self, name: str, bundle: Path, output: Path) -> ServiceProcess:
        """Make all ready but the command's own start; its process, which waits.

        Raises:
            Refused: there is no runtime on this machine.
            HapteraError: it cannot be run; in the runtime's words.
        """
        pid_file = bundle / "pid"
        log = bundle / "runtime.log"
        log.write_bytes(b"")
        words = ("--log", str(log), "create", "--bundle", str(bundle), "--pid-file", str(pid_file))
        with output.open("ab") as file:
            await self._run(*words, name, output=file.fileno(), log=log)
        return _made(pid_file)

    async def start(self, name: str) -> None:
        """Let the command begin.

        Raises:
            HapteraError: it cannot; in the runtime's words.
        """
        await self._run("start", name)

    async def execute(self, name: str, words: Sequence[str], within_s: float) -> str | None:
        """Run a command in a system; how it failed, None where it did not."""
        command = f"the command {words[0]}"
        program = self._program("exec", name, *words)
        try:
            ended = await replace(program, errors=STDOUT).run(within_s)
        except TimeoutError:
            return f"{command} did not end within {within_s:.0f} s"
        if ended.status == 0:
            return None
        last = ended.out.strip()[-SAID_CHARACTERS_MAX:]
        return f"{command} ended with status {ended.status}: {last}".rstrip(": ")

    async def sweep(self, spare: str | None) -> None:
        """Clear away all that was ever made ready here, but for one."""
        for folder in [*self.state.glob("*")]:
            if folder.name != spare:
                await self.delete(folder.name)

    async def delete(self, name: str) -> None:
        """Clear away what is left of it, and end what still lives.

        Raises:
            HapteraError: something cannot be cleared away.
        """
        await self._run("delete", "--force", name)

    async def _run(self, *words: str, output: int | None = None, log: Path | None = None) -> None:
        to = PIPE if output is None else output
        try:
            ended = await replace(self._program(*words), output=to, errors=to).run(ACTS_WITHIN_S)
        except NotStartedError:
            raise Refused(f"missing here: sudo apt install {PACKAGE}") from None
        except TimeoutError:
            text = f"{RUNTIME} {words[0]} has not ended within {ACTS_WITHIN_S:g} s"
            raise HapteraError(text) from None
        if ended.status != 0:
            raise HapteraError(f"{RUNTIME}: {_words(ended, log) or ended.status}")

    def _program(self, *words: str) -> Program:
        return Program((RUNTIME, "--root", str(self.state), *words), prepare=unbound)


def _words(ended: ProgramResult, log: Path | None) -> str:
    """The last that it complained of, without the time."""
    said = ended.errors if log is None else log.read_text("utf-8", errors="replace")
    found: list[str] = _SAID.findall(said) or [said.strip()]
    return found[-1][-SAID_CHARACTERS_MAX:]


def complaint(log: Path) -> str | None:
    """The last that a runtime complained of in its log; None where it did not."""
    try:
        found: list[str] = _SAID.findall(log.read_text("utf-8", errors="replace"))
    except OSError:
        return None
    return f"{RUNTIME}: {found[-1][-SAID_CHARACTERS_MAX:]}" if found else None


async def end(process: ServiceProcess, stop_signal: str, grace_s: float) -> None:
    """End an init, and with it all that runs in its namespace: asked first, then killed.

    Raises:
        HapteraError: it lives on, which only the kernel can explain.
    """
    send(process, number_of(stop_signal))
    if await process.ends(grace_s):
        return
    send(process, signal.SIGKILL)
    if not await process.ends(KILLED_WITHIN_S):
        raise HapteraError(f"process {process.pid} does not end, though it was killed")


def _made(pid_file: Path) -> ServiceProcess:
    pid = int(pid_file.read_text(encoding="ascii"))
    started = procfs.start_time(pid)
    if started is None:
        raise HapteraError(f"{RUNTIME} made a process that is gone already")
    return ServiceProcess(pid, started)


def send(process: ServiceProcess, number: int) -> None:
    """Send this very process a signal, if it lives."""
    if (pidfd := process.open()) is None:
        return
    try:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, number)
    finally:
        os.close(pidfd)


def number_of(name: str) -> int:
    """The number of a signal, as recipes name them: SIGTERM, TERM, 15, SIGRTMIN+3.

    >>> number_of("SIGTERM"), number_of("INT"), number_of("9"), number_of("SIGRTMIN+3")
    (15, 2, 9, 37)

    Raises:
        Refused: there is none of this name.
    """
    text = name.upper().removeprefix("SIG")
    if _NUMBER.fullmatch(text):
        return int(text)
    first, plus, more = text.partition("+")
    try:
        number = int(signal.Signals[f"SIG{first}"])
        return number + int(more) if plus else number
    except (KeyError, ValueError):
        raise Refused(f"there is no signal {name!r}: name another by STOPSIGNAL") from None
