"""Slurm as a backend of the queue: its jobs by name, submit on hold, release, cancel."""

import os
from collections.abc import Iterator
from typing import Final

from haptera.modules.slurm.commands import PATH, SlurmCommands, SlurmRefusedError
from haptera.modules.slurm.shapes import SlurmJob, jobs_in
from haptera.sdk.backends import (
    BackendTerms,
    EngineJob,
    JobName,
    JobOrder,
    JobRefusedError,
    JobReturnedError,
    JobStage,
    Partition,
    Size,
)

COMMAND_S_MAX: Final = 20.0
SECONDS_PER_MINUTE: Final = 60
# Takes the place of the shell at once: no word of a job is ever read by one.
SCRIPT: Final = b'#!/bin/sh\nexec "$@"\n'
HELD_BY_USER: Final = "JobHeldUser"
WAITING: Final = "PENDING"
# Over, with an exit status; over without one; over before they began. All others are under way.
ENDED_STATES: Final = frozenset(
    ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE")
)
CUT_STATES: Final = frozenset(("NODE_FAIL", "PREEMPTED"))
UNBEGUN_STATES: Final = frozenset(("BOOT_FAIL", "REVOKED"))
# Words of refusals that may be none a moment later (slurm_errno); any other is for good.
PASSING: Final = ("temporar", "contact slurm controller", "timed out", "Zero Bytes", "in progress")


class Slurm:
    """One Slurm.

    All jobs are those of the user whose rights its commands have.
    """

    def __init__(self, terms: BackendTerms) -> None:
        self._commands = SlurmCommands(terms.conf, COMMAND_S_MAX, terms.lesser)
        self._output = terms.output

    async def jobs(self) -> list[EngineJob]:
        """As `JobBackend.jobs`.

        Raises:
            SlurmAwayError: it does not answer.
            ForeignError: it answers in a shape that is not known.
        """
        told = await self._commands.run("squeue", "--me", "--all", "--states=all", "--json")
        named = ((JobName.parse(one.name), one) for one in jobs_in("squeue", told))
        return [job_of(name, one) for name, one in named if name is not None]

    async def sizes(self) -> list[Partition]:
        """As `JobBackend.sizes`.

        Raises:
            SlurmAwayError: it does not answer.
        """
        told = await self._commands.run("sinfo", "--noheader", "--exact", "--format=%R|%c|%m")
        rows = (line.split("|") for line in told.decode().splitlines())
        return [Partition(row[0], Size(int(row[1]), int(row[2]))) for row in rows if len(row) == 3]

    async def submit(self, order: JobOrder, partition: str) -> None:
        """As `JobBackend.submit`.

        Raises:
            JobRefusedError: it says no, or does not answer; then it may have been done.
        """
        try:
            await self._commands.run(*self._sbatch(order, partition), given=SCRIPT)
        except SlurmRefusedError as error:
            passes = any(words in str(error) for words in PASSING)
            refused = JobReturnedError if passes else JobRefusedError
            raise refused(str(error)) from error

    async def release(self, key: str) -> None:
        """As `JobBackend.release`."""
        await self._commands.run("scontrol", "release", key)

    async def cancel(self, key: str) -> None:
        """As `JobBackend.cancel`: TERM, and KILL after Slurm's own KillWait."""
        await self._commands.run("scancel", key)

    def _sbatch(self, order: JobOrder, partition: str) -> Iterator[str]:
        exported = {"PATH": PATH, **order.environment}
        yield from ("sbatch", "--parsable", "--hold", "--no-requeue", "--nodes=1", "--ntasks=1")
        yield f"--cpus-per-task={max(1, order.size.cpus)}"
        yield f"--mem={order.size.memory_mb}"
        yield f"--partition={partition}"
        yield f"--job-name={order.name}"
        yield "--chdir=/"
        yield "--output=" + (
            "/dev/null" if self._output is None else f"{self._output}/{order.name}.out"
        )
        yield f"--export={','.join(f'{name}={value}' for name, value in exported.items())}"
        if order.time_limit_s is not None:
            yield f"--time={-(-order.time_limit_s // SECONDS_PER_MINUTE)}"
        yield from ("/dev/stdin", *order.command)


def job_of(name: JobName, job: SlurmJob) -> EngineJob:
    """One of Slurm's jobs in the words of all engines."""
    key, state, said = str(job.job_id), job.job_state, f"Slurm: {job.job_state}"
    if state in UNBEGUN_STATES:
        return EngineJob(name, key, JobStage.RETURNED, None, f"{said} on {job.nodes}")
    if state in CUT_STATES:
        return EngineJob(name, key, JobStage.ENDED, None, f"{said} on {job.nodes}")
    if state in ENDED_STATES:
        status = _status(job.exit_code)
        why = None if state in ("COMPLETED", "FAILED") else f"{said}, {job.state_reason}"
        # What was cancelled before it began has the exit code of a success.
        status = None if status == 0 and state != "COMPLETED" else status
        return EngineJob(name, key, JobStage.ENDED, status, why)
    # Nothing of it can run before it is released.
    on_hold = state == WAITING and job.state_reason == HELD_BY_USER
    return EngineJob(name, key, JobStage.ON_HOLD if on_hold else JobStage.LIVE)


def _status(wait_status: int | None) -> int | None:
    """An exit status; below 0, a signal's; None also where it is no status of a process."""
    try:
        return None if wait_status is None else os.waitstatus_to_exitcode(wait_status & 0xFFFF)
    except ValueError:
        return None
