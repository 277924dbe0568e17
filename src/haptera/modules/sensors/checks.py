"""Check programs of the site: their exit codes as numbers, by the convention of Nagios or Slurm."""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from subprocess import DEVNULL
from typing import Final

from haptera.sdk import Command, HapteraError, Measured, Reading, Series
from haptera.sdk.commands import Program

state = Reading("node", "check.state", items_max=32, low=0, high=2)


class CodeStyle(StrEnum):
    """The exit codes of a check: Nagios' (0, 1, 2, else unknown), or Slurm's (0 or not)."""

    NAGIOS = "nagios"
    SLURM = "slurm"


@dataclass(frozen=True)
class CheckProgram:
    """A program that says by its exit code how this machine is."""

    name: str
    command: Command
    codes: CodeStyle = CodeStyle.NAGIOS


# By exit code: OK, WARNING, CRITICAL; UNKNOWN (3) and all others say nothing.
_NAGIOS: Final[Mapping[int, float]] = {0: 0.0, 1: 1.0, 2: 2.0}


async def checked(checks: Sequence[CheckProgram], within_s: float) -> Measured:
    """The results of all checks: None for one that cannot be run or does not end in time."""
    codes = await asyncio.gather(*(_exit_code(one.command, within_s) for one in checks))
    found: dict[Reading | Series, float | None] = {}
    for one, code in zip(checks, codes, strict=True):
        found[state.series(one.name)] = None if code is None else value_of(one.codes, code)
    return found


def value_of(codes: CodeStyle, code: int) -> float | None:
    """The state behind an exit code: 0 it is well, 1 it warns, 2 it is not; None: unknown.

    >>> value_of(CodeStyle.NAGIOS, 1), value_of(CodeStyle.NAGIOS, 3), value_of(CodeStyle.SLURM, 3)
    (1.0, None, 2.0)
    """
    if code < 0:
        return None  # ended by a signal
    if codes is CodeStyle.SLURM:
        return 0.0 if code == 0 else 2.0
    return _NAGIOS.get(code)


def words_of(check: CheckProgram) -> list[str]:
    """The words of a check's command.

    Raises:
        HapteraError: it has none.
    """
    try:
        words = shlex.split(check.command)
    except ValueError as error:
        raise HapteraError(f"check {check.name}: {error}", do="quote it as a shell does") from None
    if not words:
        raise HapteraError(f"check {check.name} has no command", do="name a program")
    return words


async def _exit_code(command: Command, within_s: float) -> int | None:
    try:
        words = shlex.split(command)
        return (await Program(words, output=DEVNULL, errors=DEVNULL).run(within_s)).status
    except (HapteraError, TimeoutError, ValueError):
        return None
