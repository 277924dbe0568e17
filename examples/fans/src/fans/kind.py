"""What a fan is: whether it spins."""

from enum import StrEnum

from haptera.sdk import Kind, Variable


class Spin(StrEnum):
    UNKNOWN = "unknown"
    STILL = "still"
    SPINNING = "spinning"


# A number, once given, is never given to another value.
spin = Variable("fan", "spin", Spin, {Spin.UNKNOWN: 0, Spin.STILL: 1, Spin.SPINNING: 2})

kind = Kind("fan", (spin,))
