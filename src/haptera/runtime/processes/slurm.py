"""Slurm as its own commands know it: what is there, submit, release, cancel, and no shell."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from haptera.model.errors import HapteraError, LimitError

# Slurm's commands wait for its controller by themselves, for longer than is of use here.
COMMAND_S_MAX: Final = 20.0
ANSWER_BYTES_MAX: Final = 256 << 20
TEXT_CHARS_MAX: Final = 400
SECONDS_PER_MINUTE: Final = 60
PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
# Takes the place of the shell at once: no word of a job is ever read by one.
SCRIPT: Final = b'#!/bin/sh\nexec "$@"\n'


class SlurmAwayError(HapteraError):
    """Slurm does not answer; what it was asked may have been done."""


class SlurmRefusedError(HapteraError):
    """Slurm says no, in its own words."""


class SlurmJob(msgspec.Struct, frozen=True):
    """One job as `squeue --json` has it; the exit code is a wait status."""

    job_id: int
    name: str
    job_state: str
    state_reason: str = ""
    exit_code: int | None = None
    nodes: str = ""


class _Listing(msgspec.Struct, frozen=True):
    jobs: list[SlurmJob]


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
    """One Slurm; `script` is a file of ours with what each job begins with."""

    def __init__(self, conf: str | None, output: str | None, script: Path) -> None:
        self._conf = conf
        self._output = output
        self._script = script
        self._environment = {"PATH": os.environ.get("PATH", PATH), "LC_ALL": "C.UTF-8"}
        if conf is not None:
            self._environment["SLURM_CONF"] = conf

    async def jobs(self) -> list[SlurmJob]:
        """All jobs of this user, ended ones among them for as long as Slurm remembers these.

        Raises:
            SlurmAwayError: it does not answer, or not in JSON.
        """
        told = await self._run("squeue", "--me", "--all", "--states=all", "--json")
        try:
            return msgspec.json.decode(told, type=_Listing).jobs
        except msgspec.DecodeError as error:
            raise SlurmAwayError(f"squeue did not return a list of jobs: {error}") from error

    async def partitions(self) -> list[Partition]:
        """The partitions, each with what its nodes have.

        Raises:
            SlurmAwayError: it does not answer.
        """
        told = await self._run("sinfo", "--noheader", "--exact", "--format=%R|%c|%m")
        rows = (line.split("|") for line in told.decode().splitlines())
        return [Partition(row[0], int(row[1]), int(row[2])) for row in rows if len(row) == 3]

    async def submit(self, order: SlurmOrder, partition: str) -> int:
        """Have a job wait on hold, and return Slurm's number of it.

        Slurm may not run it twice: what becomes of a lost one is the queue's to say.

        Raises:
            SlurmRefusedError: it says no, or does not answer; then it may have been done.
        """
        self._script.write_bytes(SCRIPT)
        limit = []
        if order.time_limit_s is not None:
            limit = [f"--time={-(-order.time_limit_s // SECONDS_PER_MINUTE)}"]
        exported = {"PATH": PATH, **order.environment}
        told = await self._run(
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
            str(self._script),
            *order.command,
        )
        return int(told.decode().partition(";")[0])

    async def release(self, number: int) -> None:
        """Let a job begin that was on hold."""
        await self._run("scontrol", "release", str(number))

    async def cancel(self, number: int) -> None:
        """End it: TERM, and KILL after Slurm's own KillWait."""
        await self._run("scancel", str(number))

    def _output_of(self, order: SlurmOrder) -> str:
        return "/dev/null" if self._output is None else f"{self._output}/{order.name}.out"

    async def _run(self, *command: str) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment,
            )
        except OSError as error:
            text = f"{command[0]}: {error.strerror}"
            raise SlurmAwayError(text, do="install slurm-client on the parent") from error
        try:
            async with asyncio.timeout(COMMAND_S_MAX):
                out, wrong = await process.communicate()
        except TimeoutError as error:
            what = f"{command[0]} does not answer within {COMMAND_S_MAX:g} s"
            raise SlurmAwayError(what, do="check whether slurmctld runs") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            text = " ".join(wrong.decode(errors="replace").split())[:TEXT_CHARS_MAX]
            raise SlurmRefusedError(f"{command[0]}: {text}")
        if len(out) > ANSWER_BYTES_MAX:
            raise LimitError(f"{command[0]} told more than {ANSWER_BYTES_MAX} bytes")
        return out
