"""Whether a holder takes jobs: what people and programs want of it, and where it stands."""

from enum import StrEnum
from typing import Annotated

import msgspec


class DutyMode(StrEnum):
    """A node that `failed` may have said so itself."""

    DRAIN = "drain"
    HOLD = "hold"
    FAILED = "failed"


class DutyState(StrEnum):
    """`drained`: no job is there, and none will be given; `absent`: nobody asks for work."""

    IDLE = "idle"
    BUSY = "busy"
    DRAINING = "draining"
    DRAINED = "drained"
    FAILED = "failed"
    HOLD = "hold"
    ABSENT = "absent"


class Duty(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Takes no new jobs, and why. What still runs is stopped at a deadline, in wall time."""

    mode: DutyMode
    reason: Annotated[str, msgspec.Meta(max_length=500)]
    who: str
    deadline_s: float | None = None
