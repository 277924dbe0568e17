"""Variables of a node in a Slurm; that it takes new jobs is its `work`, as for the queue."""

from enum import StrEnum
from typing import Final

from haptera.model.declared.schema import Attribute, Extension, Variable


class SlurmState(StrEnum):
    """`draining` runs jobs and takes no more; `drained` has none. `down`: Slurm gave it up."""

    UNKNOWN = "unknown"
    IDLE = "idle"
    ALLOCATED = "allocated"
    DRAINING = "draining"
    DRAINED = "drained"
    DOWN = "down"


state = Variable(
    "node",
    "slurm.state",
    SlurmState,
    {
        SlurmState.UNKNOWN: 0,
        SlurmState.IDLE: 1,
        SlurmState.ALLOCATED: 2,
        SlurmState.DRAINING: 3,
        SlurmState.DRAINED: 4,
        SlurmState.DOWN: 5,
    },
)
# `yes`: a Slurm gives it jobs, and drains it before it is disturbed.
member = Attribute("node", "slurm.member", size_bytes_max=4)
MEMBER: Final = "yes"
# What Slurm calls it, if not as we do.
name = Attribute("node", "slurm.name")

extension = Extension("slurm", variables=(state,), attributes=(member, name))
