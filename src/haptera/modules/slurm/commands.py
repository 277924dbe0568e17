"""Slurm's own commands, as people type them: no shell, and each has a limit of time."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from haptera.sdk import HapteraError
from haptera.sdk.owned_files import owned

ANSWER_BYTES_MAX: Final = 256 << 20
WORDS_MAX: Final = 400
PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

# As a shell says that a command cannot be run, and that it is not there.
CANNOT, MISSING = 126, 127

# The words before a command that have it run with less rights than who asks, if these are enough
# to read some files.
Lesser = Callable[[tuple[str, ...]], tuple[str, ...]]


def no_lesser(_reads: tuple[str, ...]) -> tuple[str, ...]:
    """They have the rights of who asks."""
    return ()


class SlurmAwayError(HapteraError):
    """Slurm does not answer; what it was asked may have been done."""


class SlurmMissingError(SlurmAwayError):
    """One of its commands is not installed."""


class SlurmRefusedError(HapteraError):
    """Slurm says no, in its own words."""


@dataclass(frozen=True, slots=True)
class SlurmCommands:
    """Asks one Slurm; `conf` is its configuration, where it is not at its usual place.

    It names plug-ins that Slurm's commands load, so nobody else may have changed it. They run with
    `lesser` rights, and wait for its controller by themselves, for longer than `within_s` allows.
    """

    conf: str | None
    within_s: float
    lesser: Lesser = no_lesser

    async def run(self, *command: str, given: bytes | None = None) -> bytes:
        """The output of a command; its input is `given`, which it can also reopen as /dev/stdin.

        Raises:
            HapteraError: its configuration is not there, or others may change it.
            SlurmAwayError: it cannot be run, or takes too long.
            SlurmMissingError: it is not installed.
            SlurmRefusedError: it failed, with its own words.
        """
        name = command[0]
        if self.conf is not None:
            owned(self.conf)
        process = await self._started(command, given)
        try:
            async with asyncio.timeout(self.within_s):
                out, wrong = await process.communicate()
        except TimeoutError as error:
            what = f"{name} does not answer within {self.within_s:g} s"
            raise SlurmAwayError(what, do="check whether slurmctld runs") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode == MISSING:
            raise _missing(name, "No such file or directory")
        if process.returncode == CANNOT:
            raise SlurmAwayError(f"{name}: {wrong.decode(errors='replace').strip()[:WORDS_MAX]}")
        if process.returncode != 0:
            text = " ".join(wrong.decode(errors="replace").split())[:WORDS_MAX]
            raise SlurmRefusedError(f"{name}: {text}")
        if len(out) > ANSWER_BYTES_MAX:
            raise SlurmAwayError(f"{name} printed more than {ANSWER_BYTES_MAX} bytes")
        return out

    async def _started(
        self, command: tuple[str, ...], given: bytes | None
    ) -> asyncio.subprocess.Process:
        before = self._before()
        try:
            with _to_read(given) as file:
                return await asyncio.create_subprocess_exec(
                    *before,
                    *command,
                    stdin=file,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                    env=self._environment(),
                )
        except OSError as error:
            raise _missing(command[0], error.strerror) from error

    def _before(self) -> tuple[str, ...]:
        try:
            return self.lesser(() if self.conf is None else (self.conf,))
        except OSError as error:
            do = "create the user, or have the backend name another one"
            raise SlurmAwayError(str(error), do=do) from error

    def _environment(self) -> dict[str, str]:
        said = {"PATH": os.environ.get("PATH", PATH), "LC_ALL": "C.UTF-8"}
        return said if self.conf is None else {**said, "SLURM_CONF": self.conf}


def _to_read(given: bytes | None) -> IO[bytes]:
    """A file in memory: one on the disk would lie where nobody who is confined opens it anew."""
    if given is None:
        return Path(os.devnull).open("rb")
    file = os.fdopen(os.memfd_create("given"), "w+b", buffering=0)
    file.write(given)
    file.seek(0)
    return file


def _missing(name: str, reason: str | None) -> SlurmMissingError:
    return SlurmMissingError(f"{name}: {reason}", do="install slurm-client on the parent")
