"""What is believed of the world, with who saw it, how and when."""

from enum import StrEnum

import msgspec


class Method(StrEnum):
    """How a value was come by; an inferred one never meets a goal."""

    READ = "read"
    INFERRED = "inferred"


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
