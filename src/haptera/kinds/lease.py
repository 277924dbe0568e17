"""The right of one process to lead its group under one epoch; once spent it is never held again.

It is called GROUP.EPOCH.
"""

from enum import StrEnum
from typing import Final

from haptera.kinds import group, node
from haptera.model.declared.desired_check import between
from haptera.model.declared.schema import Kind, Plain, Variable


class LeaseState(StrEnum):
    """OPEN: nobody holds it yet. SPENT: its holder holds it no more, and nobody will."""

    UNKNOWN = "unknown"
    OPEN = "open"
    HELD = "held"
    SPENT = "spent"


state = Variable(
    "lease",
    "state",
    LeaseState,
    {LeaseState.UNKNOWN: 0, LeaseState.OPEN: 1, LeaseState.HELD: 2, LeaseState.SPENT: 3},
)

# Of the replica whose process holds it.
RANK_MAX: Final = group.TRIAL_RANK_MIN + group.TRIALS_MAX - 1
rank = Plain("lease", "rank", int, size_bytes_max=8, check=between(0, RANK_MAX))

kind = Kind(
    "lease",
    (state,),
    plain=(rank,),
    borrows=(node.agent,),
    leaves=((state, LeaseState.SPENT),),
)
