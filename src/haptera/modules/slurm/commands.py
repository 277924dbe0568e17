"""Slurm's own commands, as people type them: no shell, and each has a limit of time."""

import asyncio
import os
from dataclasses import dataclass
from typing import Final

from haptera.sdk import HapteraError

ANSWER_BYTES_MAX: Final = 256 << 20
WORDS_MAX: Final = 400
PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


class SlurmAwayError(HapteraError):
    """Slurm does not answer; what it was asked may have been done."""


class SlurmMissingError(SlurmAwayError):
    """One of its commands is not installed."""


class SlurmRefusedError(HapteraError):
    """Slurm says no, in its own words."""


@dataclass(frozen=True, slots=True)
class SlurmCommands:
    """Asks one Slurm; `conf` is its configuration, where it is not at its usual place.

    Slurm's commands wait for its controller by themselves, for longer than `within_s` allows.
    """

    conf: str | None
    within_s: float

    async def run(self, *command: str) -> bytes:
        """What it prints.

        Raises:
            SlurmAwayError: it cannot be run, or takes too long.
            SlurmMissingError: it is not installed.
            SlurmRefusedError: it failed, with its own words.
        """
        name = command[0]
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment(),
            )
        except OSError as error:
            do = "install slurm-client on the parent"
            raise SlurmMissingError(f"{name}: {error.strerror}", do=do) from error
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
        if process.returncode != 0:
            text = " ".join(wrong.decode(errors="replace").split())[:WORDS_MAX]
            raise SlurmRefusedError(f"{name}: {text}")
        if len(out) > ANSWER_BYTES_MAX:
            raise SlurmAwayError(f"{name} printed more than {ANSWER_BYTES_MAX} bytes")
        return out

    def _environment(self) -> dict[str, str]:
        said = {"PATH": os.environ.get("PATH", PATH), "LC_ALL": "C.UTF-8"}
        return said if self.conf is None else {**said, "SLURM_CONF": self.conf}
