"""The tape of each simulated process: its events and effects, for the oracle."""

from typing import Final, NamedTuple

from haptera.model.effects import Effect, Publish, SaveDesired, Tell
from haptera.model.events import Event, Ticked

# The network has these as bytes, or nobody outside the process ever has them.
UNTAPED: Final = (Tell, Publish, SaveDesired, Ticked)


class TapeEntry(NamedTuple):
    """An event that a process took, or an effect that it asked for; `life` is one start of it."""

    at: int
    process: str
    life: int
    what: Event | Effect


class Booted(NamedTuple):
    """A machine's agent enrolled; `cuts` is how often the machine had lost its power by then."""

    at: int
    node: str
    incarnation: int
    cuts: int
