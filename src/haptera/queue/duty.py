"""Whether a holder takes jobs: what is desired of its work, and where it stands."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from haptera.kinds import node
from haptera.kinds.node import NodeWork
from haptera.model.changes import Desired


class DutyState(StrEnum):
    """`drained`: no job is there, and none will be given; `absent`: nobody asks for work."""

    IDLE = "idle"
    BUSY = "busy"
    DRAINING = "draining"
    DRAINED = "drained"
    FAILED = "failed"
    HOLD = "hold"
    ABSENT = "absent"


# What this is called where it is desired and observed of a node; nothing is known of an absent one.
OBSERVED: Final = {
    DutyState.IDLE: NodeWork.OPEN,
    DutyState.BUSY: NodeWork.OPEN,
    DutyState.DRAINING: NodeWork.DRAINING,
    DutyState.DRAINED: NodeWork.DRAINED,
    DutyState.FAILED: NodeWork.FAILED,
    DutyState.HOLD: NodeWork.HELD,
}


class Duty(msgspec.Struct, frozen=True):
    """Takes no new jobs, and why. What still runs is stopped at a deadline, in wall time.

    A node that `failed` may have said so itself.
    """

    work: NodeWork
    reason: str
    who: str
    deadline_s: int | None = None


def own(name: str) -> str:
    """The owner of a node's own word that it failed."""
    return f"node:{name}"


def duty_of(desired: Mapping[str, Desired]) -> Duty | None:
    """The duty of a node with these desired values; None where it takes jobs.

    >>> wish = {"work": "draining", "work_why": "new disk"}
    >>> duty_of({name: Desired(value, "user:eve") for name, value in wish.items()}).reason
    'new disk'
    """
    work = desired.get(node.work.name)
    if work is None or work.value == NodeWork.OPEN:
        return None
    # Who desires `drained` means the same: what runs may end.
    wish = NodeWork.DRAINING if work.value == NodeWork.DRAINED else NodeWork(str(work.value))
    why, until = desired.get(node.work_why.name), desired.get(node.work_until.name)
    reason = "no reason is given" if why is None else str(why.value)
    deadline_s = None if until is None else int(until.value)
    return Duty(wish, reason, work.owner, deadline_s)
