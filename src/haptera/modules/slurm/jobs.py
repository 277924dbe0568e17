"""Slurm's jobs, for the queue: what is there, submit, release, cancel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from haptera.modules.slurm.commands import PATH, Lesser, SlurmCommands, no_lesser
from haptera.modules.slurm.shapes import SlurmJob, jobs_in

COMMAND_S_MAX: Final = 20.0
SECONDS_PER_MINUTE: Final = 60
# Takes the place of the shell at once: no word of a job is ever read by one.
SCRIPT: Final = b'#!/bin/sh\nexec "$@"\n'


@dataclass(frozen=True, slots=True)
class SlurmOrder:
    """What is to be run, and how much of one node it has."""

    name: str
    command: Sequence[str]
    cpus: int
    memory_mb: int
    time_limit_s: int | None
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Partition:
    """The nodes of a partition that have so much."""

    name: str
    cpus: int
    memory_mb: int


class Slurm:
    """One Slurm.

    All jobs are those of the user that `lesser` rights are of.
    """

    def __init__(
        self,
        conf: str | None,
        output: str | None,
        lesser: Lesser = no_lesser,
    ) -> None:
        self._commands = SlurmCommands(conf, COMMAND_S_MAX, lesser)
        self._output = output

    async def jobs(self) -> list[SlurmJob]:
        """All jobs of this user, ended ones among them for as long as Slurm remembers these.

        Raises:
            SlurmAwayError: it does not answer.
            ForeignError: it answers in a shape that is not known.
        """
        told = await self._commands.run("squeue", "--me", "--all", "--states=all", "--json")
        return jobs_in("squeue", told)

    async def partitions(self) -> list[Partition]:
        """The partitions, each with what its nodes have.

        Raises:
            SlurmAwayError: it does not answer.
        """
        told = await self._commands.run("sinfo", "--noheader", "--exact", "--format=%R|%c|%m")
        rows = (line.split("|") for line in told.decode().splitlines())
        return [Partition(row[0], int(row[1]), int(row[2])) for row in rows if len(row) == 3]

    async def submit(self, order: SlurmOrder, partition: str) -> int:
        """Have a job wait on hold, and return Slurm's number of it.

        Slurm may not run it twice: what becomes of a lost one is the queue's to say.

        Raises:
            SlurmRefusedError: it says no, or does not answer; then it may have been done.
        """
        limit = []
        if order.time_limit_s is not None:
            limit = [f"--time={-(-order.time_limit_s // SECONDS_PER_MINUTE)}"]
        exported = {"PATH": PATH, **order.environment}
        told = await self._commands.run(
            "sbatch",
            "--parsable",
            "--hold",
            "--no-requeue",
            "--nodes=1",
            "--ntasks=1",
            f"--cpus-per-task={order.cpus}",
            f"--mem={order.memory_mb}",
            f"--partition={partition}",
            f"--job-name={order.name}",
            "--chdir=/",
            f"--output={self._output_of(order)}",
            f"--export={','.join(f'{name}={value}' for name, value in exported.items())}",
            *limit,
            "/dev/stdin",
            *order.command,
            given=SCRIPT,
        )
        return int(told.decode().partition(";")[0])

    async def release(self, number: int) -> None:
        """Let a job begin that was on hold."""
        await self._commands.run("scontrol", "release", str(number))

    async def cancel(self, number: int) -> None:
        """End it: TERM, and KILL after Slurm's own KillWait."""
        await self._commands.run("scancel", str(number))

    def _output_of(self, order: SlurmOrder) -> str:
        return "/dev/null" if self._output is None else f"{self._output}/{order.name}.out"
