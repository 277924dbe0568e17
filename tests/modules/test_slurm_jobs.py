"""Slurm's states in the words of all engines: what may run again, and what may not."""

import pytest

from haptera.modules.slurm.jobs import job_of
from haptera.modules.slurm.shapes import SlurmJob
from haptera.sdk.backends import EngineJob, JobName, JobStage

NAME = JobName("c0ffee", 7, 70)


@pytest.mark.parametrize(
    ("state", "reason", "exit_code", "told"),
    [
        ("PENDING", "JobHeldUser", 0, (JobStage.ON_HOLD, None, None)),
        ("PENDING", "Resources", 0, (JobStage.LIVE, None, None)),
        ("COMPLETING", "None", 0, (JobStage.LIVE, None, None)),
        ("COMPLETED", "None", 0, (JobStage.ENDED, 0, None)),
        ("FAILED", "NonZeroExitCode", 3 << 8, (JobStage.ENDED, 3, None)),
        ("CANCELLED", "None", 0, (JobStage.ENDED, None, "Slurm: CANCELLED, None")),
        ("TIMEOUT", "TimeLimit", 15, (JobStage.ENDED, -15, "Slurm: TIMEOUT, TimeLimit")),
        # What ran on a node that failed may have had its effects, whatever is left as its status.
        ("NODE_FAIL", "None", 1 << 8, (JobStage.ENDED, None, "Slurm: NODE_FAIL on n3")),
        ("PREEMPTED", "None", 0, (JobStage.ENDED, None, "Slurm: PREEMPTED on n3")),
        ("BOOT_FAIL", "None", 0, (JobStage.RETURNED, None, "Slurm: BOOT_FAIL on n3")),
        # No status of any process.
        ("FAILED", "None", 0x7F, (JobStage.ENDED, None, None)),
    ],
)
def test_each_state_of_slurm_is_a_stage_of_all_engines(state, reason, exit_code, told):
    job = SlurmJob(12, str(NAME), state, reason, exit_code, "n3")
    assert job_of(NAME, job) == EngineJob(NAME, "12", *told)
