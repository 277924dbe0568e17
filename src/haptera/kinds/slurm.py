"""What a node is to a Slurm: whether it runs jobs, and whether it takes new ones."""

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


class SlurmUse(StrEnum):
    """Whether Slurm may give a node jobs: `open` and `drained` can be desired.

    One that haptera drains only for a disturbance is `open`.
    """

    UNKNOWN = "unknown"
    OPEN = "open"
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
use = Variable(
    "node",
    "slurm.use",
    SlurmUse,
    {
        SlurmUse.UNKNOWN: 0,
        SlurmUse.OPEN: 1,
        SlurmUse.DRAINING: 2,
        SlurmUse.DRAINED: 3,
        SlurmUse.DOWN: 4,
    },
)
# `yes`: a Slurm gives it jobs, and drains it before it is disturbed.
member = Attribute("node", "slurm.member", size_bytes_max=4)
MEMBER: Final = "yes"
# What Slurm calls it, if not as we do.
name = Attribute("node", "slurm.name")

extension = Extension("slurm", variables=(state, use), attributes=(member, name))
