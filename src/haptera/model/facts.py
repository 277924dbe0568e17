"""What is believed of the world, with who saw it, how and when."""

from enum import StrEnum
from typing import Final

import msgspec

# What others report is believed for so long after they read it.
REPORTED_MS_MAX: Final = 600_000


class Method(StrEnum):
    """The source of a value; one that is inferred never meets a goal.

    One that is `reported` was read by a program outside haptera: it is known where no look tells,
    and else a memory, which has the looks taken.
    """

    READ = "read"
    INFERRED = "inferred"
    REPORTED = "reported"


class Fact(msgspec.Struct, frozen=True, gc=False):
    """One observed value with its provenance.

    `at` is in ns of this process's clock (CLOCK_BOOTTIME); `incarnation` is the node's at that
    time, 0 where it had none yet. The value of an `applied` variable is the digest in force.
    `note` is what was seen besides the value, in words for people (how a service ended).
    """

    value: str
    by: str
    method: Method
    at: int
    incarnation: int
    note: str | None = None
