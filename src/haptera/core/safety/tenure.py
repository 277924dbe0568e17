"""The time for which a parent may act by a lease in a shared store, on its own clock.

The store ends a lease no earlier than its length after it took the request (Gray, Cheriton,
"Leases", SOSP 1989). So its holder counts from when it sent the request, on its own clock since
boot, less what two clocks may differ by meanwhile.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

# By how much the clocks of two machines may differ in rate.
DRIFT_PERCENT: Final = 5


class LeaseChoice(StrEnum):
    """What a seeker may do about the lease."""

    TAKE = "take"
    WAIT = "wait"
    GIVE_UP = "give up"


@dataclass(frozen=True, slots=True)
class LeaseSeeker:
    """Who wants to be the parent: its store is of term `known`, and it would begin `term`."""

    name: str
    known: int
    term: int


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What the store says: who holds the lease now, and who began which term last."""

    holder: str | None = None
    term: int = 0
    begun_by: str | None = None


def choose(own: LeaseSeeker, found: LeaseRecord) -> LeaseChoice:
    """Whether this one may hold the lease: not while another does, nor with an older store."""
    continues = (found.term, found.begun_by) == (own.term, own.name)
    if found.term > own.known and not continues:
        return LeaseChoice.GIVE_UP
    return LeaseChoice.TAKE if found.holder in (None, own.name) else LeaseChoice.WAIT


class Tenure:
    """Until when the holder of a lease may act; all times are in ns of its own clock."""

    def __init__(self) -> None:
        self.until = 0

    def renewed(self, asked_at: int, length_ns: int) -> None:
        """A request that was sent then was granted for so long."""
        self.until = max(self.until, asked_at + length_ns * (100 - DRIFT_PERCENT) // 100)

    def left_ns(self, now: int) -> int:
        """How much of it is left; 0: nothing may be done any more."""
        return max(0, self.until - now)
