"""The landmark heuristic: an admissible lower bound of what a goal still costs.

Each projection pays what its variables must do at the least (cost partitioning), landmarks add what
all of them overlook. Hoffmann, Porteous, Sebastia, "Ordered Landmarks in Planning", JAIR 22, 2004;
Karpas, Domshlak, "Cost-Optimal Planning with Landmarks", IJCAI 2009.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as default
from functools import reduce
from operator import or_
from typing import Final

from haptera.planner.domain.bitstate import Field
from haptera.planner.domain.task import Task
from haptera.planner.search.projections import Projection, projections_of, whole_of
from haptera.planner.search.search_budget import SearchBudget

# Things that must be so at some time for the goal to be met: so many are minded.
LANDMARKS_MAX: Final = 256
# Work, in moves tried: beginning with a row and a variable, minding a landmark in a state, looking
# what comes before one for a variable.
BEGINNING: Final = 2
MINDING: Final = 10
LOOKING: Final = 10


@dataclass(frozen=True, slots=True, eq=False)
class Landmark:
    """Something that must be so at some time: that variables of a block have no bad bit.

    While one is set, what clears it is in the future. `ahead` remembers, for states of the block,
    what that costs it at the least, and the bits of the landmarks that come before.
    """

    bit: int
    block: Projection
    fields: tuple[Field, ...]
    bad: int
    whole: int
    ahead: dict[int, tuple[float, int]] = default(default_factory=dict)


class LandmarkHeuristic:
    """What the goal costs at the least from a state; UNREACHED where nothing leads to it.

    No cost counts in two blocks, so what they cost adds up; of one block the farthest landmark
    counts. A move never lowers it by more than its own cost. The caller is charged for what has
    to be found out first; with a budget that is spent the answer is less.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._grounds = {one.variable: one for one in task.grounds}
        self._blocks: dict[Field, Projection] = {}
        self._marks: dict[int, Landmark] = {}
        self._by_bit: dict[int, tuple[Landmark, int, int, dict[int, tuple[float, int]]]] = {}
        self.ends = 0

    def _begin(self, budget: SearchBudget) -> bool:
        """Part the task in blocks, if that can be afforded."""
        task = self._task
        if not budget.covers(BEGINNING * len(task.rows) * len(task.fields)):
            return False
        self._blocks = {field: block for block in projections_of(task) for field in block.fields}
        ends = [block.fields for block in dict.fromkeys(self._blocks.values())]
        ends += [(field,) for field in task.fields]
        bads = ((fields, whole_of(fields) & ~task.allowed) for fields in ends)
        self.ends = reduce(or_, (self._mark(fields, bad) for fields, bad in bads if bad), 0)
        return True

    def __call__(self, state: int, budget: SearchBudget) -> float:
        if not self._blocks and not self._begin(budget):
            return 0
        farthest: dict[int, float] = {}
        by_bit = self._by_bit
        left = minded = self.ends if budget.work > 0 else 0
        while left:
            bit = left & -left
            left ^= bit
            mark, bad, whole, ahead = by_bit[bit]
            if state & bad:
                here = state & whole
                cost, before = ahead.get(here) or self.ahead(mark, here, budget)
                if cost > farthest.get(whole, 0):
                    farthest[whole] = cost
                before &= ~minded
                left |= before
                minded |= before
        budget.work -= MINDING * minded.bit_count()
        return sum(farthest.values())

    def ahead(self, mark: Landmark, state: int, budget: SearchBudget) -> tuple[float, int]:
        """What a mark costs, and the bits of those before it; nothing if that is too much work."""
        if budget.work <= 0:
            return 0, 0
        budget.spend(LOOKING * len(self._task.fields))
        cost, before = mark.block.cost(state, mark.bad, budget), 0
        if budget.work <= 0:
            return 0, 0
        if len(mark.fields) == 1:
            first = self._first(mark, state)
            before = reduce(or_, (self._mark((one,), bad) for one, bad in first), 0)
        ahead = mark.ahead[state] = cost, before
        return ahead

    def _mark(self, fields: tuple[Field, ...], bad: int) -> int:
        """The bit of a landmark; none where no more of them are minded."""
        if bad not in self._marks and len(self._marks) < LANDMARKS_MAX:
            block = self._blocks[fields[0]]
            mark = Landmark(1 << len(self._marks), block, fields, bad, block.whole)
            self._marks[bad] = mark
            self._by_bit[mark.bit] = mark, bad, mark.whole, mark.ahead
        return self._marks[bad].bit if bad in self._marks else 0

    def _first(self, mark: Landmark, state: int) -> Iterator[tuple[Field, int]]:
        """Bits of other variables that must be gone by the time that the mark is met.

        Either just before, for the moves that can meet it, or just after, for its value to stay
        known.
        """
        (field,) = mark.fields
        good = field.whole & ~mark.bad
        grounds = self._grounds.get(field.name)
        rows = mark.block.leading(state, mark.bad)
        if not rows or (grounds and grounds.loose and good & field.remembered):
            return  # Nothing can bring it about, or strip can.
        before = reduce(or_, (~forbidden for forbidden, *_ in rows))
        after = grounds.reading(good) if grounds and not good & ~field.known else -1
        for other in self._task.fields:
            for reach in (before, after):
                if other is not field and (missing := other.whole & ~reach):
                    yield other, missing
