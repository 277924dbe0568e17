"""The search budget of one question: counted work, for the core has no clock."""

from dataclasses import dataclass
from typing import Final

# States that searches go on from before they give up, and states that walks look at, where nothing
# waits for them: these are some 0.3 s.
EXPANSIONS_MAX: Final = 4_000
OUTLOOKS_MAX: Final = 5_000
# Work is counted in moves tried, at some 60 ns each: this is a minute, which only
# trials for a reason can take.
WORK_APART_MAX: Final = 1_000_000_000
# In the core others wait: some 8 ms for a chain, or for the reason why there is none.
WORK_MAX: Final = 64_000


@dataclass(slots=True)
class SearchBudget:
    """Spent by all that is done for a question: each part of its goal, each doubt, each reason.

    Once it is spent nothing more is begun, and what is under way ends soon.
    """

    states: int = EXPANSIONS_MAX
    outlooks: int = OUTLOOKS_MAX
    work: int = WORK_APART_MAX

    @property
    def is_spent(self) -> bool:
        """Whether the search for the cheapest chain is to end, and all that follows from it."""
        return self.states <= 0 or self.work <= 0

    def covers(self, work: int) -> bool:
        """Spend so much; all that is left where that is not enough, and it is not to be done."""
        covered = work < self.work
        self.work -= work if covered else self.work
        return covered

    def spend(self, work: int, states: int = 0) -> None:
        self.work -= work
        self.states -= states


def affordable(work: int = WORK_MAX) -> SearchBudget:
    """For a question that the core answers: what takes longer is a worker's."""
    return SearchBudget(outlooks=0, work=work)
