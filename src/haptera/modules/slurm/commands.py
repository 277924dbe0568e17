"""Slurm's own commands, as people type them: no shell, and each has a limit of time."""

from dataclasses import dataclass
from typing import Final

from haptera.sdk import HapteraError
from haptera.sdk.commands import (
    Lesser,
    NotStartedError,
    Program,
    UnfitWordsError,
    clean,
    no_lesser,
)
from haptera.sdk.owned_files import owned

ANSWER_BYTES_MAX: Final = 256 << 20
WORDS_MAX: Final = 400
PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

# As a shell says that a command cannot be run, and that it is not there.
CANNOT, MISSING = 126, 127


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
        program = Program(
            (*self._before(), *command),
            self._environment(),
            given=given,
            output_bytes_max=ANSWER_BYTES_MAX,
        )
        try:
            ended = await program.run(self.within_s)
        except TimeoutError as error:
            what = f"{name} does not answer within {self.within_s:g} s"
            raise SlurmAwayError(what, do="check whether slurmctld runs") from error
        except UnfitWordsError as error:
            raise SlurmRefusedError(f"{name}: {error.reason}") from error
        except NotStartedError as error:
            raise _missing(name, error.reason) from error
        if ended.status == MISSING:
            raise _missing(name, "No such file or directory")
        if ended.status == CANNOT:
            raise SlurmAwayError(f"{name}: {ended.errors.strip()[:WORDS_MAX]}")
        if ended.status != 0:
            text = " ".join(ended.errors.split())[:WORDS_MAX]
            raise SlurmRefusedError(f"{name}: {text}")
        if ended.cut:
            raise SlurmAwayError(f"{name} printed more than {ANSWER_BYTES_MAX} bytes")
        return ended.output

    def _before(self) -> tuple[str, ...]:
        try:
            return self.lesser(() if self.conf is None else (self.conf,))
        except OSError as error:
            do = "create the user, or have the backend name another one"
            raise SlurmAwayError(str(error), do=do) from error

    def _environment(self) -> dict[str, str]:
        own = {} if self.conf is None else {"SLURM_CONF": self.conf}
        return clean(**{"LC_ALL": "C.UTF-8", **own})


def _missing(name: str, reason: str) -> SlurmMissingError:
    return SlurmMissingError(f"{name}: {reason}", do="install slurm-client on the parent")
