"""Greedy best-first search with preferred operators: some plan soon, by the FF heuristic.

Helmert, "The Fast Downward Planning System", JAIR 26, 2006, section 5.3 (preferred operators).
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from typing import Final

from haptera.planner.domain.bitstate import strip
from haptera.planner.domain.task import Task
from haptera.planner.search.ff_heuristic import FFHeuristic, RelaxedPlan, only

# How much more the way ahead counts than the way come.
WEIGHT: Final = 10
# Of so many turns all but one are for the preferred moves; that one is for any.
TURNS: Final = 3
# States are come to again and again, which costs a tenth of looking at them first: so many times
# for each that may be looked at.
VISITS_MAX: Final = 10

# A state, the cost of its path, the state before, and the number of the row between them.
Arrival = tuple[int, int, int, int]
# What ways on from a state promise to cost, which were seen first, what is paid, the state, and
# where the ways lead.
Queue = list[tuple[int, int, int, int, Iterator[tuple[int, int]]]]


class GreedyBestFirst:
    """Plans from the states of one search, which share what is found out about states.

    `outlooks` bounds the states that may be looked at in all. From the root no barred part is gone.
    """

    def __init__(
        self,
        task: Task,
        relaxation: FFHeuristic,
        start: int,
        *,
        outlooks: int,
        barred: frozenset[str],
    ) -> None:
        self.root = start & task.within
        self._task = task
        self._relaxation = relaxation
        self._outlooks_max = outlooks
        self._outlooks: dict[int, RelaxedPlan] = {}
        self._visits = 0
        paths = [row[-1].part.path for row in task.rows]
        self._open = {number for number, path in enumerate(paths) if path not in barred}

    @property
    def expanded(self) -> int:
        """How many states were looked at."""
        return len(self._outlooks)

    def met(self, state: int) -> bool:
        return state & self._task.wanted == self._task.wanted

    def after(self, state: int, number: int) -> int:
        """Where the row of this number leads."""
        _, keep, put, _, upsets, _ = self._task.rows[number]
        return strip(state & keep | put, upsets)

    def is_walled(self) -> bool:
        """Whether nothing leads from the root to the goal, even if what is won were never lost."""
        outlook = self._outlook(self.root)
        return outlook is not None and outlook.left is None

    def plan(self, start: int) -> list[int] | None:
        """The numbers of rows that lead to the goal; None where none do within the budget."""
        come: dict[int, Arrival] = {}
        preferred: Queue = []
        onward: Queue = []
        arrival: Arrival | None = (start, 0, start, -1)
        turns = seen = 0
        while arrival is not None:
            state, paid, *_ = arrival
            come[state] = arrival
            if self.met(state):
                return _way(come, state)
            outlook = self._outlook(state)
            if outlook is None:
                return None
            if outlook.left is not None:
                promise = WEIGHT * outlook.left + paid
                for queue, some in ((preferred, outlook.preferred), (onward, outlook.onward)):
                    for cost, ways in some:
                        seen += 1
                        heappush(queue, (promise + cost, seen, paid + cost, state, iter(ways)))
            turns += 1
            queues = (preferred, onward) if turns % TURNS else (onward, preferred)
            arrival = _next(queues, come)
        return None

    def lean(self, start: int, plan: list[int]) -> list[int]:
        """Without the moves that it can do without, each with those that fail after it."""
        state, at = start, 0
        while at < len(plan):
            rest = self._enough(state, plan[at + 1 :])
            if rest is None:
                state = self.after(state, plan[at])
                at += 1
            else:
                plan = plan[:at] + rest
        return plan

    def _enough(self, state: int, plan: list[int]) -> list[int] | None:
        """Those of its moves that can be made from a state; None where they are not enough."""
        kept = list[int]()
        for number in plan:
            forbidden, keep, put, _, upsets, _ = self._task.rows[number]
            barred = state == self.root and number not in self._open
            if not barred and not state & forbidden:
                kept.append(number)
                state = strip(state & keep | put, upsets)
        return kept if self.met(state) else None

    def _outlook(self, state: int) -> RelaxedPlan | None:
        """What there is to do; None where the budget is spent."""
        self._visits += 1
        found = self._outlooks.get(state)
        if found is None and len(self._outlooks) < self._outlooks_max:
            found = self._relaxation.outlook(state)
            if state == self.root:
                found = self._opening(found)
            self._outlooks[state] = found
        return found if self._visits <= VISITS_MAX * self._outlooks_max else None

    def _opening(self, outlook: RelaxedPlan) -> RelaxedPlan:
        """Without what is barred."""
        onward, preferred = only(outlook.onward, self._open), only(outlook.preferred, self._open)
        return RelaxedPlan(outlook.left, onward, preferred)


def _next(queues: Iterable[Queue], come: Container[int]) -> Arrival | None:
    """The best of the first queue that has any left."""
    for queue in queues:
        while queue:
            _, _, paid, state, ways = queue[0]
            for after, number in ways:
                if after not in come:
                    return after, paid, state, number
            heappop(queue)
    return None


def _way(come: Mapping[int, Arrival], state: int) -> list[int]:
    numbers = []
    while come[state][3] >= 0:
        _, _, state, number = come[state]
        numbers.append(number)
    return numbers[::-1]
