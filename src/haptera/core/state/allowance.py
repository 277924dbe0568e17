"""The work that one turn may still spend, in counted moves: the core has no clock."""

from dataclasses import dataclass
from typing import Final

# In moves that a search could try. After so much work nothing more is begun in a turn. What was
# begun last may cost as much as a question may: all of it together takes the core some 10 ms.
TURN_WORK_MAX: Final = 20_000
# What reading an entity costs, where all are asked about; and how many are read at once.
READING_EACH: Final = 50
READ_AT_ONCE: Final = 100


@dataclass(slots=True)
class TurnAllowance:
    """A turn's allowance, spent by each of its workers; `spent` may end up past the limit."""

    spent: int = 0

    @property
    def has_time(self) -> bool:
        """Whether something may yet be begun in this turn."""
        return self.spent < TURN_WORK_MAX

    def spend(self, work: int) -> None:
        self.spent += work

    def let_in(self) -> None:
        """Have time for one more thing in this turn, unless what was begun in it took long."""
        if self.spent < 2 * TURN_WORK_MAX:
            self.spent = min(self.spent, TURN_WORK_MAX - 1)
